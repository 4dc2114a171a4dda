"""Starts echelle-mqtt, and checks its books and the numbers of what it published."""

import json

from cluster import BINARIES

GATEWAY = BINARIES / "echelle-mqtt"
CALM_ARGUMENTS = ["--source", "sim:?channels=4&samples=256&rate=1e5", "--workers", 2,
                  "--nperseg", 256, "--average", 4]  # fmt: skip
DROP_SUM = ("delivered", "waiting", "in_flight")


def check_sums(report):
    messages, spectra = report["messages"], report["feed"]["spectra"]
    dropped = sum(messages["dropped"].values())
    assert messages["made"] == dropped + sum(messages[key] for key in DROP_SUM), messages
    assert spectra["in"] == spectra["used"] + spectra["rate_limited"] + spectra["bad"], spectra
    assert all(count > 0 for count in messages["dropped"].values())


def gateway(place, broker, *arguments, report="mqtt.json"):
    return place.start(GATEWAY, "--broker", broker, "--report", place.output / report, *arguments)


def report_of(place, report="mqtt.json"):
    made = json.loads((place.output / report).read_text())
    check_sums(made)
    return made


def sequences_are_whole(messages):
    """Of each topic and life of the gateway: 0, 1, 2 … and nothing missing. How many in all."""
    numbers = {}
    for message in messages:
        if message.topic.split("/")[-2].startswith("psd"):
            boot, sequence = message.properties["boot"], int(message.properties["sequence"])
        else:
            content = json.loads(message.payload)
            boot, sequence = content["boot"], content["sequence"]
        numbers.setdefault((message.topic, boot), []).append(sequence)
    for topic, found in numbers.items():
        assert found == list(range(len(found))), topic
    return sum(map(len, numbers.values()))
