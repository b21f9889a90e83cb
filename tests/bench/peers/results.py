# SPDX-License-Identifier: Apache-2.0
"""What was measured of one model and number format."""

import dataclasses
import statistics


@dataclasses.dataclass
class Series:
    """One engine's numbers of one column in one way (ways.py), one for each round."""
    engine: str
    column: str
    batching: str | None = None  # None: Attendant's own, and latency
    scouted: float = 0
    samples: list = dataclasses.field(default_factory=list)  # tokens per second, or p50 in ms
    times_ms: list = dataclasses.field(default_factory=list)  # latency: every call of all rounds
    flops: list = dataclasses.field(default_factory=list)     # Attendant's
    ceilings: list = dataclasses.field(default_factory=list)  # FLOP/s of the weight products alone, the same rounds
    split: str | None = None  # streams x threads; None: in runs before there was a choice

    @property
    def median(self):
        return statistics.median(self.samples)

    @property
    def way(self):
        return ", ".join(filter(None, (self.split, self.batching)))

    @property
    def is_latency(self):
        return self.column.startswith("latency")

    def p99(self):
        times = sorted(self.times_ms)
        return times[len(times) * 99 // 100]

    def record(self, answer, ceiling):
        if self.is_latency:
            self.samples.append(statistics.median(answer["times_ms"]))
            self.times_ms += answer["times_ms"]
            return
        self.samples.append(answer["tokens_per_second"])
        if "flops" in answer and ceiling:
            self.flops.append(answer["flops"])
            self.ceilings.append(ceiling)


def sign(column):
    """Latency is better where it is smaller."""
    return -1 if column.startswith("latency") else 1


class Group:
    """The results of one model and number format."""

    def __init__(self, model, dtype):
        self.model = model
        self.dtype = dtype
        self.series = []
        self.accuracy = {}  # by engine and kind of texts
        self.long = {}      # by length: Attendant's times and memory for one sequence
        self.versions = {}
        self.failures = {}

    @classmethod
    def from_json(cls, fields):
        group = cls(fields["model"], fields["dtype"])
        group.series = [Series(**series) for series in fields["series"]]
        for name in ("accuracy", "long", "versions", "failures"):
            setattr(group, name, fields[name])
        return group

    def as_json(self):
        return vars(self) | {"series": [dataclasses.asdict(series) for series in self.series]}

    def add(self, newer):
        """What a later run measured takes the place of what an earlier one did."""
        columns = {series.column for series in newer.series}
        self.series = [series for series in self.series if series.column not in columns] + newer.series
        self.accuracy |= newer.accuracy
        self.long |= newer.long
        self.failures = {name: why for name, why in self.failures.items() if name not in newer.versions} | newer.failures
        self.versions |= newer.versions

    def best(self, name, column, without=()):
        """The engine's series with the best median, or None. `without`: sizes of batches that do not count."""
        mine = [series for series in self.series
                if (series.engine, series.column) == (name, column) and series.batching not in without]
        return max(mine, key=lambda series: sign(column) * series.median, default=None)

    def best_peer(self, column, without=()):
        peers = [self.best(name, column, without) for name in self.versions if not name.startswith("attendant")]
        return max(filter(None, peers), key=lambda series: sign(column) * series.median, default=None)
