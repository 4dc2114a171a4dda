"""Reads the text that /metrics serves, by the exposition format of prometheus.io
(docs/instrumenting/exposition_formats): names, types, helps and samples."""

import re
import urllib.request
from dataclasses import dataclass, field

SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass
class Family:
    name: str
    help: str
    type: str = ""
    samples: dict = field(default_factory=dict)  # (name, labels as a sorted tuple) -> value

    def labels(self):
        """The names of its labels, without those of histograms and summaries."""
        return {
            label for _, labels in self.samples for label, _ in labels if label not in ("le", "quantile")
        }

    def of(self, **labels):
        """The sum of the samples with these labels; of a histogram, of its counts."""
        name = self.name + ("_count" if self.type == "histogram" else "")
        wanted = set(labels.items())
        return sum(
            value
            for (sample, has), value in self.samples.items()
            if sample == name and wanted <= set(has)
        )

    def counted(self):
        """Those samples that must never fall."""
        if self.type == "counter":
            return dict(self.samples)
        if self.type == "histogram":
            return {key: value for key, value in self.samples.items() if key[0] != self.name}
        return {}


def parse(text):
    families, current = {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert name not in families, f"{name} comes twice"
            current = families[name] = Family(name, words)
        elif line.startswith("# TYPE "):
            _, _, name, current.type = line.split(" ")
            assert name == current.name
        else:
            name, labels, value = SAMPLE.match(line).groups()
            assert name.startswith(current.name), line
            key = name, tuple(sorted(LABEL.findall(labels or "")))
            assert key not in current.samples, f"{key} comes twice"
            current.samples[key] = float(value)
    return families


def fetch(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return answer.read().decode()


def scrape(address):
    return parse(fetch(address))
