# SPDX-License-Identifier: Apache-2.0
"""What is measured: the lengths, the same for every engine, and the sizes of a peer's batches."""

import dataclasses
import math
import pathlib

from ways import Batching

UNIFORM = (32, 128, 512)
LATENCY = (16, 128)
LONG = (2048, 4096, 8192)
BUDGETS = (0, 512, 1024, 4096)


@dataclasses.dataclass(frozen=True)
class Column:
    """One number of each engine: tokens per second over `lens`, or the latency of a single sequence."""
    name: str
    lens: tuple[int, ...]
    batchings: tuple[Batching, ...] = ()
    one_stream: bool = False

    @property
    def is_latency(self):
        return self.name.startswith("latency")


def lens_in(file):
    """The lengths that a C++ file of tests/bench lists."""
    text = (pathlib.Path(__file__).parent.parent / file).read_text()
    numbers = " ".join(line for line in text.splitlines() if not line.startswith("//"))
    return tuple(int(number) for number in numbers.replace(",", " ").split())


def mixed_lens():
    return lens_in("mixed_lengths.inc")


def uniform(length, tokens, budgets):
    """Budgets below two sequences are one by one."""
    batchings = tuple(Batching(budget) for budget in budgets if budget == 0 or budget >= 2 * length)
    return Column(f"uniform {length}", (length,) * math.ceil(tokens / length), batchings)


def columns(lens, uniform_tokens, uniform_lens=UNIFORM, budgets=BUDGETS):
    """By case."""
    arrival = tuple(Batching(budget) for budget in budgets)
    by_length = tuple(Batching(budget, sort=True) for budget in budgets)
    return {
        "uniform": [uniform(length, uniform_tokens, budgets) for length in uniform_lens],
        "mixed": [Column("mixed, arrival order", lens, arrival)],
        "sorted": [Column("mixed, sorted by length", lens, by_length)],
        "latency": [Column(f"latency {n}", (n,), one_stream=True) for n in LATENCY],
        "threads": [Column("threads, mixed", lens, one_stream=True)],
    }
