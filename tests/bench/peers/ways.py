# SPDX-License-Identifier: Apache-2.0
"""The ways in which an engine can use the threads: streams x threads, and the sizes of batches. Which of them are best."""

import dataclasses

ONE_BY_ONE = "one by one"
# Beside the best way of the first look, so many that came this close to it are measured in every round.
FINALIST = 0.9
FINALISTS = 3


@dataclasses.dataclass(frozen=True)
class Split:
    """`streams` batches are computed at the same time, each by `threads` threads."""
    streams: int
    threads: int

    def __str__(self):
        return f"{self.streams}x{self.threads}"


def splits(threads):
    """Every split of so many threads, one stream first."""
    return [Split(streams, threads // streams) for streams in range(1, threads + 1) if threads % streams == 0]


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
class Way:
    split: Split
    batching: Batching | None = None  # None: Attendant's own, and latency

    def __str__(self):
        return f"{self.split}, {self.batching}" if self.batching else str(self.split)

    @property
    def in_batches(self):
        return str(self.batching) != ONE_BY_ONE


def all_ways(splits_of_threads, batchings):
    return [Way(split, batching) for split in splits_of_threads for batching in batchings or (None,)]


def finalists(rates):
    """Of the ways of a first look, with their rates: the best, those close to it, and the best that makes batches."""
    ordered = sorted(rates, key=rates.get, reverse=True)
    chosen = [way for way in ordered[:FINALISTS] if rates[way] >= FINALIST * rates[ordered[0]]]
    best_in_batches = [way for way in ordered if way.in_batches][:1]
    return chosen + [way for way in best_in_batches if way not in chosen]
