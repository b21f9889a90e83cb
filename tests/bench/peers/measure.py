# SPDX-License-Identifier: Apache-2.0
"""Measures all engines of one model and number format, in rounds."""

import statistics

import accuracy
import engine as engines
import workloads
from results import Series

# Beside the best batch size of the first look, those that came this close to it are measured in every round.
FINALIST = 0.9


def question(column, batching):
    if column.is_latency:
        return f"latency {column.lens[0]}"
    batches = batching.cut(column.lens) if batching else [column.lens]
    return "rate " + " / ".join(" ".join(map(str, batch)) for batch in batches)


class Measurement:
    """Fills a group: loads its engines, chooses the peers' best batch sizes, measures in rounds."""

    def __init__(self, group, folder, options, log):
        self.group = group
        self.folder = folder
        self.options = options
        self.log = log
        self.running = {}

    def run(self, names, columns, texts, scouted):
        """`scouted`: by engine and column, what the peers were seen to do; filled, and relied on where it is filled."""
        self.start(names)
        try:
            for kind in texts:
                self.each(lambda name, engine: self.group.accuracy.setdefault(name, {}).update(
                    {kind: accuracy.measure(engine, self.folder / kind)}))
            for column in columns:
                self.each(lambda name, engine: self.scout(name, engine, column, scouted))
            for number in range(self.options.rounds if columns else 0):
                self.log.note(f"{self.group.model} {self.group.dtype}: round {number + 1} of {self.options.rounds}")
                self.round(columns)
        finally:
            for engine in self.running.values():
                engine.close()
        self.group.series = [series for series in self.group.series if series.samples]

    def start(self, names):
        self.running = {}
        for name in names:
            try:
                arguments = engines.command(name, self.folder, self.group.dtype, self.options)
                self.running[name] = engines.Engine(arguments, self.options, self.log.file)
                self.group.versions[name] = self.running[name].about
            except (engines.EngineError, OSError) as error:
                self.group.failures[name] = str(error)
        self.log.note(f"{self.group.model} {self.group.dtype}: {', '.join(self.running) or 'nothing'} loaded")

    def each(self, act):
        """Calls `act` with each engine; one that fails is reported and left out from then on."""
        for name, engine in list(self.running.items()):
            try:
                act(name, engine)
            except engines.EngineError as error:
                self.group.failures[name] = str(error)
                self.running.pop(name).close()

    def scout(self, name, engine, column, scouted):
        if name.startswith("attendant") or not column.batchings:
            candidates = {None: 0}
        else:
            candidates = scouted.setdefault(f"{name}/{column.name}", {})
            for batching in column.batchings:
                if str(batching) not in candidates:
                    candidates[str(batching)] = engine.ask(question(column, batching))["tokens_per_second"]
        best = max(candidates.values())
        in_batches = max((rate for batching, rate in candidates.items() if batching != workloads.ONE_BY_ONE), default=0)
        self.group.series += [Series(name, column.name, batching, rate) for batching, rate in candidates.items()
                              if rate >= FINALIST * best or rate == in_batches]

    def round(self, columns):
        for column in columns:
            ceiling = None
            if "attendant" in self.running and not column.is_latency:
                ceiling = self.running["attendant"].ask("ceiling")["flops"]
            batchings = {str(batching): batching for batching in column.batchings}
            self.each(lambda name, engine: [
                series.record(engine.ask(question(column, batchings.get(series.batching))), ceiling)
                for series in self.group.series if (series.engine, series.column) == (name, column.name)])


def long_sequences(group, options, log):
    """One sequence alone, of each length in a process that holds no more than it needs for that length."""
    running = {}
    try:
        for length in workloads.LONG:
            arguments = engines.long_command(group.model, group.dtype, length, options)
            running[length] = engines.Engine(arguments, options, log.file)
        for number in range(options.rounds):
            log.note(f"{group.model} {group.dtype}: long sequences, round {number + 1} of {options.rounds}")
            for length, engine in running.items():
                answer = engine.ask(f"latency {length}")
                at = group.long.setdefault(str(length), {"samples_ms": [], "flops": answer["flops"]})
                at["samples_ms"].append(statistics.median(answer["times_ms"]))
                at["resident_bytes"] = engine.ask("memory")["resident_bytes"]
    except (engines.EngineError, OSError) as error:
        group.failures["attendant"] = str(error)
    finally:
        for engine in running.values():
            engine.close()
