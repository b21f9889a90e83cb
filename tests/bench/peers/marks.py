# SPDX-License-Identifier: Apache-2.0
"""What Attendant sets out to reach, as ratios within one run, and what a run reached."""

import statistics

ARRIVAL, SORTED = "mixed, arrival order", "mixed, sorted by length"
CEILING = "share of the matmul ceiling, mixed"
SPEED = ("uniform 128", ARRIVAL, SORTED, CEILING)
LATENCY = ("latency 16", "latency 128")

# By peer; None is the best one.
MARKS = {
    ("bert-base", "f32"): {"uniform 128": {None: 1.10}, ARRIVAL: {"ctranslate2": 1.4, "openvino": 2.3},
                           SORTED: {None: 1.15}, CEILING: {None: 0.93}},
    ("bert-base", "bf16"): {"uniform 128": {None: 1.10}, ARRIVAL: {None: 2.4}, SORTED: {None: 1.25},
                            CEILING: {None: 0.90}},
    ("bert-base", "int8"): {"uniform 128": {None: 1.75}, ARRIVAL: {"ctranslate2": 2.5, "onnxruntime": 3.0},
                            SORTED: {None: 1.75}, CEILING: {None: 0.87}},
    ("minilm", "f32"): {"uniform 128": {None: 1.25}, ARRIVAL: {None: 1.8}, SORTED: {None: 1.4}, CEILING: {None: 0.94}},
    ("minilm", "bf16"): {"uniform 128": {None: 1.4}, ARRIVAL: {None: 3.6}, SORTED: {None: 1.45}, CEILING: {None: 0.87}},
    ("minilm", "int8"): {"uniform 128": {None: 2.1}, ARRIVAL: {None: 4.2}, SORTED: {None: 2.4}, CEILING: {None: 0.78}},
}
LATENCY_MARKS = {"minilm": {"latency 16": 0.6, "latency 128": 0.8},
                 "bert-base": {"latency 16": 0.75, "latency 128": 0.92}}
P99_MARK = 1.5
ACCURACY_MARKS = {"bf16": {"cosine_min": 0.9999}, "int8": {"cosine_mean": 0.998, "cosine_min": 0.99, "spearman": 0.998}}


def outcome(model, dtype, column, peer, values, mark, at_most=False):
    """One mark and the values of the rounds."""
    value = statistics.median(values)
    reached = value <= mark if at_most else value >= mark
    return {"model": model, "dtype": dtype, "column": column, "peer": peer, "value": value, "low": min(values),
            "high": max(values), "mark": mark, "at_most": at_most, "reached": reached}


def ratios(ours, theirs):
    """Of the same rounds: what slows one round down slows both."""
    return [a / b for a, b in zip(ours.samples, theirs.samples)]


def speed(group):
    for column, bounds in MARKS.get((group.model, group.dtype), {}).items():
        for peer, mark in bounds.items():
            if column == CEILING:
                ours = group.best("attendant", ARRIVAL)
                values = [a / b for a, b in zip(ours.flops, group.ceilings)] if ours else []
                theirs = None
            else:
                ours = group.best("attendant", column)
                theirs = group.best(peer, column) if peer else group.best_peer(column)
                values = ratios(ours, theirs) if ours and theirs else []
            if values:
                yield outcome(group.model, group.dtype, column, theirs and theirs.engine, values, mark)


def latency(group):
    for column, mark in LATENCY_MARKS[group.model].items():
        ours, theirs = group.best("attendant", column), group.best_peer(column)
        if ours and theirs:
            yield outcome(group.model, group.dtype, column, theirs.engine, ratios(ours, theirs), mark, at_most=True)
        if ours:
            tail = [p99 / p50 for p99, p50 in zip(ours.p99, ours.samples)]
            yield outcome(group.model, group.dtype, f"p99 / p50, {column}", None, tail, P99_MARK, at_most=True)


def accuracy(group):
    for name, mark in ACCURACY_MARKS.get(group.dtype, {}).items():
        if "attendant" in group.accuracy:
            yield outcome(group.model, group.dtype, name, None, [group.accuracy["attendant"][name]], mark)


def all_of(groups):
    return [one for group in groups for kind in (speed, latency, accuracy) for one in kind(group)]
