# SPDX-License-Identifier: Apache-2.0
"""A strict reader of the Prometheus text exposition format 0.0.4, and a view of how numbers moved."""

import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:{{(.*)}})? (\S+)")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


class Family:
    def __init__(self, name):
        self.name, self.type, self.help = name, None, None
        self.samples = {}  # (sample name, sorted labels) -> value


def _labels(text):
    pairs, rest = [], text
    while rest:
        match = LABEL.match(rest)
        assert match, f"bad labels: {text}"
        pairs.append(match.groups())
        rest = rest[match.end():]
        assert not rest or rest.startswith(","), f"bad labels: {text}"
        rest = rest[1:]
    assert len(dict(pairs)) == len(pairs), f"a label occurs twice: {text}"
    return tuple(sorted(pairs))


def parse(page):
    """{family name: Family}; AssertionError where the page breaks the format."""
    assert page.endswith("\n")
    families, current = {}, None
    for line in page.splitlines():
        if line.startswith("# "):
            current = _comment(line, families)
        elif line:
            _sample(line, current)
    for family in families.values():
        assert family.help, f"{family.name} has no HELP"
        _check_histogram(family)
    return families


def _comment(line, families):
    _, keyword, name, text = line.split(" ", 3)
    assert keyword in ("HELP", "TYPE") and re.fullmatch(NAME, name), line
    family = families.setdefault(name, Family(name))
    assert not family.samples, f"{line}: after samples of the family"
    assert getattr(family, keyword.lower()) is None, f"{line}: twice"
    assert keyword == "HELP" or text in TYPES, line
    setattr(family, keyword.lower(), text)
    return family


def _sample(line, family):
    match = SAMPLE.fullmatch(line)
    assert match, f"bad line: {line}"
    name, labels, value = match.groups()
    assert family and name in [family.name + s for s in SUFFIXES.get(family.type, ("",))], f"{line}: outside its family"
    key = (name, _labels(labels or ""))
    assert key not in family.samples, f"{line}: twice"
    family.samples[key] = float(value)
    assert family.type != "counter" or family.samples[key] >= 0, line


def _check_histogram(family):
    if family.type != "histogram":
        return
    series = {}
    for (name, labels), value in family.samples.items():
        rest = tuple(pair for pair in labels if pair[0] != "le")
        if name.endswith("_bucket"):
            series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
    assert series, f"{family.name} has no buckets"
    for labels, buckets in series.items():
        bounds, counts = zip(*buckets)
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, f"{family.name}: bounds {bounds}"
        assert list(counts) == sorted(counts), f"{family.name}: not cumulative"
        assert counts[-1] == family.samples[(family.name + "_count", labels)], f"{family.name}: count is not +Inf"


class Page:
    """One scrape; page.value(name, label=...) is the sum of the samples that have these labels."""

    def __init__(self, text):
        self.families = parse(text)
        self.samples = {key: value for family in self.families.values() for key, value in family.samples.items()}

    def value(self, name, **labels):
        wanted = set(labels.items())
        fitting = [value for (sample, have), value in self.samples.items() if sample == name and wanted <= set(have)]
        return sum(fitting)

    def label_values(self, label):
        return {value for _, labels in self.samples for name, value in labels if name == label}
