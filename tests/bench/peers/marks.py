# SPDX-License-Identifier: Apache-2.0
"""What Attendant sets out to reach, as ratios within one run, and what a run reached."""

import statistics

from ways import ONE_BY_ONE

ARRIVAL, SORTED = "mixed, arrival order", "mixed, sorted by length"
# One by one, a peer pads nothing; the marks were set beside peers that were asked for batches.
IN_BATCHES = "mixed, arrival order, peers in batches"
CEILING = "share of the matmul ceiling, mixed"
SPEED = ("uniform 128", "uniform 512", IN_BATCHES, ARRIVAL, SORTED, CEILING)
LATENCY = ("latency 16", "latency 128")
THREADS = "threads, mixed"
SCALING, LONG_TIME, LONG_MEMORY = "all threads / one, mixed", "8192 / 2048 tokens, time by FLOP", "memory growth"

# By peer; None is the best one. Those of machines with AMX are others.
MARKS = {
    ("bert-base", "f32"): {"uniform 128": {None: 1.10}, ARRIVAL: {"ctranslate2": 1.4, "openvino": 2.3},
                           SORTED: {None: 1.15}, CEILING: {None: 0.95}},
    ("bert-base", "bf16"): {"uniform 128": {None: 1.10}, ARRIVAL: {None: 2.4}, SORTED: {None: 1.25},
                            CEILING: {None: 0.96}},
    ("bert-base", "int8"): {"uniform 128": {None: 1.75}, ARRIVAL: {"ctranslate2": 2.5, "onnxruntime": 3.0},
                            SORTED: {None: 1.75}, CEILING: {None: 0.90}},
    ("minilm", "f32"): {"uniform 128": {None: 1.25}, ARRIVAL: {None: 1.8}, SORTED: {None: 1.4}, CEILING: {None: 0.93}},
    ("minilm", "bf16"): {"uniform 128": {None: 1.4}, ARRIVAL: {None: 3.6}, SORTED: {None: 1.45}, CEILING: {None: 0.90}},
    ("minilm", "int8"): {"uniform 128": {None: 2.1}, ARRIVAL: {None: 4.2}, SORTED: {None: 2.4}, CEILING: {None: 0.80}},
}
AMX_MARKS = {
    ("bert-base", "f32"): {"uniform 128": {None: 1.05}, "uniform 512": {None: 1.10}, ARRIVAL: {None: 1.5},
                           CEILING: {None: 0.93}},
    ("bert-base", "bf16"): {"uniform 128": {None: 1.25}, "uniform 512": {None: 1.30}, ARRIVAL: {None: 3.4},
                            CEILING: {None: 0.85}},
    ("bert-base", "int8"): {"uniform 128": {None: 2.4}, "uniform 512": {None: 2.0}, ARRIVAL: {None: 4.5},
                            CEILING: {None: 0.75}},
    ("minilm", "f32"): {"uniform 128": {None: 1.15}, "uniform 512": {None: 1.2}, ARRIVAL: {None: 1.6},
                        CEILING: {None: 0.88}},
    ("minilm", "bf16"): {"uniform 128": {None: 1.4}, "uniform 512": {None: 1.4}, ARRIVAL: {None: 4.0},
                         CEILING: {None: 0.70}},
    ("minilm", "int8"): {"uniform 128": {None: 2.6}, "uniform 512": {None: 2.2}, ARRIVAL: {None: 5.5},
                         CEILING: {None: 0.50}},
}
# The ratios of models without marks of their own are to be those of this one in the same tables, at least.
LIKE = "bert-base"
LIKE_COLUMNS = ("uniform 128", "uniform 512", IN_BATCHES, ARRIVAL, SORTED)
LATENCY_MARKS = {"f32": {"latency 16": 0.75, "latency 128": 0.9}, "bf16": {"latency 16": 0.5, "latency 128": 0.75},
                 "int8": {"latency 16": 0.5, "latency 128": 0.75}}
P99_MARK = 1.5
THREADS_MARK = 1.9
LONG_TIME_MARK = 1.3
# Memory for 8,192 tokens less that for 4,096, by the same for 4,096 and 2,048: 2 where it is linear, 4 where quadratic.
LONG_MEMORY_MARK = 2.1
ACCURACY_MARKS = {"bf16": {"cosine_min": 0.9999}, "int8": {"cosine_mean": 0.998, "cosine_min": 0.99, "spearman": 0.998}}
ACCURACY_TEXTS = "texts"


def outcome(model, dtype, column, peer, values, mark, at_most=False, ways=None):
    """One mark and the values of the rounds. `ways`: Attendant's and the peer's best."""
    value = statistics.median(values)
    reached = value <= mark if at_most else value >= mark
    return {"model": model, "dtype": dtype, "column": column, "peer": peer, "value": value, "low": min(values),
            "high": max(values), "mark": mark, "at_most": at_most, "reached": reached, "ways": ways}


def ratios(ours, theirs):
    """Of the same rounds: what slows one round down slows both."""
    return [a / b for a, b in zip(ours, theirs)]


def to_peer(group, column, peer):
    """Attendant's and the peer's best series of a column, and the ratios of their rounds; None where one has no series.
    `peer`: None is the best one."""
    measured = ARRIVAL if column == IN_BATCHES else column
    without = (ONE_BY_ONE,) if column == IN_BATCHES else ()
    ours = group.best("attendant", measured)
    theirs = group.best(peer, measured, without) if peer else group.best_peer(measured, without)
    return (ours, theirs, ratios(ours.samples, theirs.samples)) if ours and theirs else None


def ceiling(group, mark):
    ours = group.best("attendant", ARRIVAL)
    if ours and ours.ceilings:
        yield outcome(group.model, group.dtype, CEILING, None, ratios(ours.flops, ours.ceilings), mark, ways=[ours.way, None])


def speed(group, amx=False):
    bounds_of = dict((AMX_MARKS if amx else MARKS).get((group.model, group.dtype), {}))
    bounds_of[IN_BATCHES] = bounds_of.get(ARRIVAL, {})
    for column, bounds in bounds_of.items():
        for peer, mark in bounds.items():
            if column == CEILING:
                yield from ceiling(group, mark)
            elif found := to_peer(group, column, peer):
                ours, theirs, values = found
                yield outcome(group.model, group.dtype, column, theirs.engine, values, mark, ways=[ours.way, theirs.way])


def like(group, model):
    """What `group` reaches beside the best peer, with what the group `model` reaches there as the mark."""
    for column in LIKE_COLUMNS:
        found, bound = to_peer(group, column, None), to_peer(model, column, None)
        if found and bound:
            ours, theirs, values = found
            yield outcome(group.model, group.dtype, column, theirs.engine, values, statistics.median(bound[2]),
                          ways=[ours.way, theirs.way])


def latency(group):
    if not has_marks(group):
        return
    for column, mark in LATENCY_MARKS[group.dtype].items():
        ours, theirs = group.best("attendant", column), group.best_peer(column)
        if ours and theirs:
            yield outcome(group.model, group.dtype, column, theirs.engine, ratios(ours.samples, theirs.samples), mark,
                          at_most=True)
        if ours:
            yield outcome(group.model, group.dtype, f"p99 / p50, {column}", None, [ours.p99() / ours.median], P99_MARK,
                          at_most=True)


def scaling(group):
    all_threads, one = group.best("attendant", THREADS), group.best("attendant-threads=1", THREADS)
    if all_threads and one:
        yield outcome(group.model, group.dtype, SCALING, None, ratios(all_threads.samples, one.samples), THREADS_MARK)


def long_sequences(group):
    if len(group.long) < 3:
        return
    short, middle, long = (group.long[length] for length in sorted(group.long, key=int))
    flops = long["flops"] / short["flops"]
    times = [time / flops for time in ratios(long["samples_ms"], short["samples_ms"])]
    yield outcome(group.model, group.dtype, LONG_TIME, None, times, LONG_TIME_MARK, at_most=True)
    growth = (long["resident_bytes"] - middle["resident_bytes"]) / (middle["resident_bytes"] - short["resident_bytes"])
    yield outcome(group.model, group.dtype, LONG_MEMORY, None, [growth], LONG_MEMORY_MARK, at_most=True)


def accuracy(group):
    ours = group.accuracy.get("attendant", {}).get(ACCURACY_TEXTS)
    for name, mark in ACCURACY_MARKS.get(group.dtype, {}).items():
        if ours:
            yield outcome(group.model, group.dtype, name, None, [ours[name]], mark)


def has_marks(group):
    return any(group.model == model for model, _ in MARKS)


def all_of(groups, amx):
    """`amx`: the machine has it."""
    kinds = (latency, scaling, long_sequences, accuracy)
    outcomes = [one for group in groups
                for found in (speed(group, amx), *(kind(group) for kind in kinds)) for one in found]
    models = {group.dtype: group for group in groups if group.model == LIKE}
    return outcomes + [one for group in groups if not has_marks(group) and group.dtype in models
                       for one in like(group, models[group.dtype])]
