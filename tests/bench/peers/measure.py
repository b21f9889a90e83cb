# SPDX-License-Identifier: Apache-2.0
"""Measures all engines of one model and number format, in rounds."""

import dataclasses
import statistics

import accuracy
import engine as engines
import machine

# Beside the best batch size of the first look, those that came this close to it are measured in every round.
FINALIST = 0.9


@dataclasses.dataclass
class Series:
    """One engine's numbers of one column with one way of batching."""
    engine: str
    column: object
    batching: object  # None: Attendant's own, and latency
    scouted: float = 0
    samples: list = dataclasses.field(default_factory=list)
    p99: list = dataclasses.field(default_factory=list)
    flops: list = dataclasses.field(default_factory=list)

    @property
    def median(self):
        return statistics.median(self.samples)

    def question(self):
        if self.column.is_latency:
            return f"latency {self.column.lens[0]}"
        batches = self.batching.cut(self.column.lens) if self.batching else [self.column.lens]
        return "rate " + " / ".join(" ".join(map(str, batch)) for batch in batches)

    def scout(self, engine):
        answer = engine.ask(self.question())
        self.scouted = -answer["p50_ms"] if self.column.is_latency else answer["tokens_per_second"]

    def sample(self, engine):
        answer = engine.ask(self.question())
        if self.column.is_latency:
            self.samples.append(answer["p50_ms"])
            self.p99.append(answer["p99_ms"])
            return
        self.samples.append(answer["tokens_per_second"])
        self.flops.append(answer.get("flops", 0))


class Group:
    def __init__(self, model, dtype):
        self.model = model
        self.dtype = dtype
        self.series = []
        self.ceilings = []  # FLOP/s of the weight products alone, one for each round
        self.accuracy = {}
        self.versions = {}
        self.failures = {}
        self.load_average = machine.load_average()

    def run(self, names, folder, columns, options, log):
        running = self.start(names, folder, options, log)
        try:
            if (folder / "texts").exists():
                self.each(running, lambda engine: self.accuracy.update({engine.name: accuracy.measure(engine, folder)}))
            self.scout(running, columns)
            for number in range(options.rounds):
                log.note(f"{self.model} {self.dtype}: round {number + 1} of {options.rounds}")
                self.round(running, columns)
        finally:
            for engine in running.values():
                engine.close()
        self.series = [series for series in self.series if series.samples]

    def start(self, names, folder, options, log):
        running = {}
        for name in names:
            try:
                running[name] = engines.Engine(name, folder, self.dtype, options, log.file)
                self.versions[name] = running[name].about
            except (engines.EngineError, OSError) as error:
                self.failures[name] = str(error)
        log.note(f"{self.model} {self.dtype}: {', '.join(running) or 'nothing'} loaded")
        return running

    def each(self, running, act):
        """Calls `act` with each engine; one that fails is reported and left out from then on."""
        for name, engine in list(running.items()):
            try:
                act(engine)
            except engines.EngineError as error:
                self.failures[name] = str(error)
                running.pop(name).close()

    def scout(self, running, columns):
        for column in columns:
            self.each(running, lambda engine: self.scout_column(engine, column))

    def scout_column(self, engine, column):
        batchings = (None,) if engine.name == "attendant" else column.batchings or (None,)
        candidates = [Series(engine.name, column, batching) for batching in batchings]
        for series in candidates:
            series.scout(engine)
        best = max(series.scouted for series in candidates)
        self.series += [series for series in candidates if best < 0 or series.scouted >= FINALIST * best]

    def round(self, running, columns):
        if "attendant" in running:
            self.each({"attendant": running["attendant"]},
                      lambda engine: self.ceilings.append(engine.ask("ceiling")["flops"]))
        for column in columns:
            self.each(running, lambda engine: self.sample_column(engine, column))

    def sample_column(self, engine, column):
        for series in self.series:
            if series.engine == engine.name and series.column is column:
                series.sample(engine)

    def best(self, name, column):
        """The engine's series with the best median, or None."""
        mine = [series for series in self.series if series.engine == name and series.column.name == column]
        sign = -1 if column.startswith("latency") else 1
        return max(mine, key=lambda series: sign * series.median, default=None)

    def best_peer(self, column):
        sign = -1 if column.startswith("latency") else 1
        peers = [self.best(name, column) for name in self.versions if name != "attendant"]
        return max(filter(None, peers), key=lambda series: sign * series.median, default=None)
