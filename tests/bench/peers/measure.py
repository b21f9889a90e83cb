# SPDX-License-Identifier: Apache-2.0
"""Measures all engines of one model and number format, in rounds."""

import itertools
import statistics

import accuracy
import engine as engines
import ways
import workloads
from results import Series


def question(column, batching):
    if column.is_latency:
        return f"latency {column.lens[0]}"
    batches = batching.cut(column.lens) if batching else [column.lens]
    return "rate " + " / ".join(" ".join(map(str, batch)) for batch in batches)


class Measurement:
    """Fills a group: loads its engines with every split of the threads, chooses each engine's best ways, measures in
    rounds."""

    def __init__(self, group, folder, options, log):
        self.group = group
        self.folder = folder
        self.options = options
        self.log = log
        self.splits = ways.splits(options.threads)
        self.running = {}  # by name and split
        self.chosen = []   # column, way and series, in the order of the questions

    def run(self, names, columns, texts, scouted):
        """`scouted`: by engine and column, how fast each way was seen to be; filled, and relied on where it is filled."""
        self.start(names, self.splits[:1] if all(column.one_stream for column in columns) else self.splits)
        try:
            for name, kind in itertools.product(names, texts):
                self.attempt(name, self.splits[0], lambda engine: self.group.accuracy.setdefault(name, {}).update(
                    {kind: accuracy.measure(engine, self.folder / kind)}))
            for column, name in itertools.product(columns, names):
                self.choose(name, column, scouted)
            for number in range(self.options.rounds if columns else 0):
                self.log.note(f"{self.group.model} {self.group.dtype}: round {number + 1} of {self.options.rounds}")
                self.round(columns)
        finally:
            for engine in self.running.values():
                engine.close()
        self.group.series = [series for series in self.group.series if series.samples]

    def start(self, names, splits):
        self.running, self.chosen = {}, []
        for name, split in itertools.product(names, splits):
            try:
                arguments = engines.command(name, self.folder, self.group.dtype, self.options, split)
                self.running[name, split] = engines.Engine(arguments, split.threads, self.log.file)
                self.group.versions[name] = self.running[name, split].about
            except (engines.EngineError, OSError) as error:
                self.fail(name, split, error)
        loaded = ", ".join(f"{name} {split}" for name, split in self.running)
        self.log.note(f"{self.group.model} {self.group.dtype}: {loaded or 'nothing'} loaded")

    def fail(self, name, split, error):
        self.group.failures[name] = f"{split}: {error}"

    def attempt(self, name, split, act):
        """What `act` returns for the engine. None where there is none or it fails: that is reported, and it is left out
        from then on."""
        engine = self.running.get((name, split))
        try:
            return act(engine) if engine else None
        except engines.EngineError as error:
            self.fail(name, split, error)
            self.running.pop((name, split)).close()
            return None

    def ask(self, name, way, column):
        return self.attempt(name, way.split, lambda engine: engine.ask(question(column, way.batching)))

    def choose(self, name, column, scouted):
        """The ways that are measured in every round."""
        if column.one_stream:
            rates = {ways.Way(self.splits[0]): 0}
        else:
            rates = self.look(name, column, scouted.setdefault(f"{name}/{column.name}", {}))
        for way in ways.finalists(rates):
            series = Series(name, column.name, batching=way.batching and str(way.batching), scouted=rates[way],
                            split=str(way.split))
            self.group.series.append(series)
            self.chosen.append((column, way, series))

    def look(self, name, column, known):
        """The rate of each way of an engine; `known` ones, by the way's text, are not measured again."""
        rates = {}
        batchings = () if name.startswith("attendant") else column.batchings
        for way in ways.all_ways(self.splits, batchings):
            if str(way) not in known and (answer := self.ask(name, way, column)):
                known[str(way)] = answer["tokens_per_second"]
            if str(way) in known and (name, way.split) in self.running:
                rates[way] = known[str(way)]
        return rates

    def round(self, columns):
        for column in columns:
            ceiling = None
            if not column.is_latency:
                ceiling = self.attempt("attendant", self.splits[0], lambda engine: engine.ask("ceiling")["flops"])
            for way, series in [(way, series) for of, way, series in self.chosen if of is column]:
                if answer := self.ask(series.engine, way, column):
                    series.record(answer, ceiling)


def long_sequences(group, options, log):
    """One sequence alone, of each length in a process that holds no more than it needs for that length."""
    running = {}
    try:
        for length in workloads.LONG:
            arguments = engines.long_command(group.model, group.dtype, length, options)
            running[length] = engines.Engine(arguments, options.threads, log.file)
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
