"""The byte-exact packets of tests/golden/packets, shared with the readers in other languages."""

import json
import os
import pathlib

_TOP = pathlib.Path(__file__).resolve().parents[3]
_GOLDEN = pathlib.Path(os.environ.get("ECHELLE_GOLDEN_DIR", _TOP / "tests" / "golden"))
PACKETS = _GOLDEN / "packets"
PACKETS_2 = _GOLDEN / "packets_2"

INDEX = json.loads((PACKETS / "index.json").read_text(encoding="ascii"))["packets"]
VALID = [entry for entry in INDEX if entry["error"] == "none"]
BROKEN = [entry for entry in INDEX if entry["error"] != "none"]

INDEX_2 = json.loads((PACKETS_2 / "index.json").read_text(encoding="ascii"))["packets"]


def read_2(entry):
    """The bytes of a golden packet of version 2.x."""
    return (PACKETS_2 / entry["file"]).read_bytes()


def read(entry_or_name):
    """The bytes of a golden packet, given by its index entry or its name without ``.bin``."""
    name = entry_or_name["file"] if isinstance(entry_or_name, dict) else entry_or_name + ".bin"
    return (PACKETS / name).read_bytes()


def name_of(entry):
    """What pytest calls the case."""
    return entry["file"]
