# SPDX-License-Identifier: Apache-2.0
"""The measurements of attention_compare, and what follows from them."""

import dataclasses
import json
import math


@dataclasses.dataclass
class Series:
    """One kind: seconds and bytes beside its operands, by length; and why the other lengths were left out."""
    kind: str
    title: str
    formula: str
    seconds: dict[int, float] = dataclasses.field(default_factory=dict)
    bytes: dict[int, int] = dataclasses.field(default_factory=dict)
    peak: dict[int, int] = dataclasses.field(default_factory=dict)
    cut: dict[int, str] = dataclasses.field(default_factory=dict)


def read(lines):
    """Series by kind, in the order of their first line."""
    found = {}
    for line in lines:
        entry = json.loads(line)
        series = found.setdefault(entry["kind"], Series(entry["kind"], entry["title"], entry["formula"]))
        length = entry["len"]
        if "cut" in entry:
            series.cut[length] = entry["cut"]
            continue
        series.seconds[length] = entry["seconds"]
        series.bytes[length] = entry["scratch_bytes"] + entry["weights_bytes"]
        series.peak[length] = entry["peak_bytes"]
    return found


def slope(values):
    """The exponent of length, by least squares of the logarithms over the upper half of the lengths; None for
    fewer than two of them."""
    lengths = sorted(values)
    upper = lengths[len(lengths) // 2:]
    if len(upper) < 2:
        return None
    x = [math.log(length) for length in upper]
    y = [math.log(values[length]) for length in upper]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return (sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
            / sum((a - mean_x) ** 2 for a in x))


MARGIN = 0.95  # of the slower one's time: less is noise


def overtakes(faster, slower):
    """The length from which `faster` takes at most MARGIN of the time at all measured lengths, between the two
    that it lies between by interpolation of the logarithms; the smallest length if always, None if never."""
    lengths = sorted(set(faster) & set(slower))
    ratios = [math.log(faster[length] / slower[length] / MARGIN) for length in lengths]
    if not lengths or ratios[-1] > 0:
        return None
    last_behind = max((i for i, ratio in enumerate(ratios) if ratio > 0), default=None)
    if last_behind is None:
        return float(lengths[0])
    behind, ahead = ratios[last_behind], ratios[last_behind + 1]
    share = behind / (behind - ahead)
    return lengths[last_behind] * (lengths[last_behind + 1] / lengths[last_behind]) ** share
