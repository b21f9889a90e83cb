# SPDX-License-Identifier: Apache-2.0
"""What is measured: the lengths, the same for every engine, and how a peer's batches are cut from them."""

import dataclasses
import math
import pathlib

UNIFORM = (32, 128, 512)
LATENCY = (16, 128)
LONG = (2048, 4096, 8192)
ONE_BY_ONE = "one by one"
BUDGETS = (0, 512, 1024, 4096)


@dataclasses.dataclass(frozen=True)
class Batching:
    """`budget`: padded tokens in a batch, 0 for one sequence at a time."""
    budget: int
    sort: bool = False

    def __str__(self):
        return str(self.budget) if self.budget else ONE_BY_ONE

    def cut(self, lens):
        batches, longest = [], 0
        for length in sorted(lens) if self.sort else lens:
            longest = max(longest, length)
            if not batches or longest * (len(batches[-1]) + 1) > self.budget:
                batches.append([])
                longest = length
            batches[-1].append(length)
        return batches


@dataclasses.dataclass(frozen=True)
class Column:
    """One number of each engine: tokens per second over `lens`, or the latency of a single sequence."""
    name: str
    lens: tuple[int, ...]
    batchings: tuple[Batching, ...] = ()

    @property
    def is_latency(self):
        return self.name.startswith("latency")


def mixed_lens():
    text = (pathlib.Path(__file__).parent.parent / "mixed_lengths.inc").read_text()
    numbers = " ".join(line for line in text.splitlines() if not line.startswith("//"))
    return tuple(int(number) for number in numbers.replace(",", " ").split())


def columns(lens, uniform_tokens, budgets=BUDGETS):
    """By case."""
    arrival = tuple(Batching(budget) for budget in budgets)
    by_length = tuple(Batching(budget, sort=True) for budget in budgets)
    return {
        "uniform": [Column(f"uniform {n}", (n,) * math.ceil(uniform_tokens / n), arrival) for n in UNIFORM],
        "mixed": [Column("mixed, arrival order", lens, arrival)],
        "sorted": [Column("mixed, sorted by length", lens, by_length)],
        "latency": [Column(f"latency {n}", (n,)) for n in LATENCY],
        "threads": [Column("threads, mixed", lens)],
    }
