#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes mixed_lengths.inc: 192 draws of a log-normal distribution, clipped to 4…512, in the order drawn.

Its median 48 and mean 55.6 fix sigma = sqrt(2 ln(mean / median)). The seed is the first one whose 192 draws have that
median and, to a decimal, that mean themselves; nothing else was looked at.
"""

import itertools
import math
import pathlib
import random
import statistics

COUNT, MEDIAN, MEAN, SHORTEST, LONGEST = 192, 48, 55.6, 4, 512
LENGTHS_A_LINE = 16

HEAD = f"""// SPDX-License-Identifier: Apache-2.0
// The mixed lengths of every comparison: {COUNT} draws of a log-normal distribution with median {MEDIAN} and mean {MEAN},
// clipped to {SHORTEST}...{LONGEST}, in the order drawn, by make_mixed_lengths.py. Included by workload.cc, read by
// peers/workloads.py.
// clang-format off
"""


def draw(seed):
    numbers = random.Random(seed)
    sigma = math.sqrt(2 * math.log(MEAN / MEDIAN))
    drawn = [round(numbers.lognormvariate(math.log(MEDIAN), sigma)) for _ in range(COUNT)]
    return [min(max(length, SHORTEST), LONGEST) for length in drawn]


def choose():
    return next(lens for lens in map(draw, itertools.count())
                if statistics.median(lens) == MEDIAN and round(statistics.mean(lens), 1) == MEAN)


def text(lens):
    lines = [lens[i:i + LENGTHS_A_LINE] for i in range(0, len(lens), LENGTHS_A_LINE)]
    return HEAD + "".join(", ".join(map(str, line)) + ",\n" for line in lines)


if __name__ == "__main__":
    (pathlib.Path(__file__).parent / "mixed_lengths.inc").write_text(text(choose()))
