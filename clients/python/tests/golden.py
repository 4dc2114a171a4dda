"""The byte-exact packets of tests/golden/packets, shared with the readers in other languages."""

import json
import os
import pathlib

_TOP = pathlib.Path(__file__).resolve().parents[3]
PACKETS = pathlib.Path(os.environ.get("ECHELLE_GOLDEN_DIR", _TOP / "tests" / "golden")) / "packets"

INDEX = json.loads((PACKETS / "index.json").read_text(encoding="ascii"))["packets"]
VALID = [entry for entry in INDEX if entry["error"] == "none"]
BROKEN = [entry for entry in INDEX if entry["error"] != "none"]


def read(entry_or_name):
    """The bytes of a golden packet, given by its index entry or its name without ``.bin``."""
    name = entry_or_name["file"] if isinstance(entry_or_name, dict) else entry_or_name + ".bin"
    return (PACKETS / name).read_bytes()


def name_of(entry):
    """What pytest calls the case."""
    return entry["file"]
