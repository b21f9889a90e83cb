# SPDX-License-Identifier: Apache-2.0
"""A run as JSON and as Markdown."""

import marks

TITLES = {"attendant": "Attendant", "openvino": "OpenVINO", "onnxruntime": "ONNX Runtime",
          "ctranslate2": "CTranslate2", "pytorch": "PyTorch", "minilm": "MiniLM-L6", "bert-base": "BERT-base"}


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cell(series):
    if series is None:
        return "–"
    return number(series.median) + (f" ({series.batching})" if series.batching else "")


def throughput(groups, columns):
    rows = []
    for group in groups:
        for name in group.versions:
            rows.append([TITLES[group.model], group.dtype, TITLES[name],
                         *(cell(group.best(name, column)) for column in columns)])
    return table(["model", "dtype", "engine", *columns], rows)


def mark_cell(one):
    bound = f"{'≤' if one['at_most'] else '≥'} {one['mark']:g}"
    peer = f" × {TITLES[one['peer']]}" if one["peer"] else ""
    spread = f", {one['low']:.2f}–{one['high']:.2f}" if one["low"] != one["high"] else ""
    return f"{one['value']:.3f}{peer} ({bound}{spread})" + ("" if one["reached"] else " **missed**")


def mark_table(outcomes, columns):
    rows = {}
    for one in outcomes:
        if one["column"] in columns:
            row = rows.setdefault(f"{TITLES[one['model']]} {one['dtype']}", {})
            row.setdefault(one["column"], []).append(mark_cell(one))
    return table(["", *columns],
                 [[name, *(", ".join(row.get(column, ["–"])) for column in columns)] for name, row in rows.items()])


def accuracy_cell(group, name, field):
    mark = marks.ACCURACY_MARKS.get(group.dtype, {}).get(field) if name == "attendant" else None
    value = group.accuracy[name][field]
    return f"{value:.5f}" + (f" (≥ {mark})" if mark else "") + (" **missed**" if mark and value < mark else "")


def accuracy_table(groups):
    fields = ("cosine_mean", "cosine_min", "spearman")
    return table(["dtype", "engine", *fields],
                 [[group.dtype, TITLES[name], *(accuracy_cell(group, name, field) for field in fields)]
                  for group in groups for name in group.accuracy])


def ratio_tables(groups, outcomes):
    tails = tuple(f"p99 / p50, {column}" for column in marks.LATENCY)
    parts = [mark_table(outcomes, marks.SPEED), mark_table(outcomes, marks.LATENCY + tails)]
    if any(group.accuracy for group in groups):
        parts.append(accuracy_table(groups))
    return "\n".join(parts)


def failures(groups):
    return [f"- {TITLES[group.model]} {group.dtype}, {TITLES[name]}: {why}"
            for group in groups for name, why in group.failures.items()]


def markdown(run, groups, columns):
    machine, settings = run["machine"], run["settings"]
    failed = failures(groups)
    return "\n".join([
        "# Attendant's engine and its peers, side by side", "",
        f"`{run['command']}`", "",
        f"- {run['begin']} to {run['end']}, load average before it {run['load_average']:.1f}",
        f"- {machine['cpu']} (family/model {machine['family_model']}), processors {run['cpus']} of "
        f"{machine['online_cpus']}, {machine['memory_gib']} GiB, Linux {machine['kernel']}",
        f"- CPU flags: {' '.join(machine['flags'])}",
        f"- {', '.join(run['versions'])}",
        f"- Attendant's revision: {run['revision']}; its instruction set: {', '.join(run['isa']) or '–'}",
        f"- {settings['threads']} threads each, {settings['rounds']} rounds of {settings['seconds']} s, "
        f"{run['sequences']} mixed sequences of {run['tokens']} tokens", "",
        "## Ratios, with the marks", "",
        "Attendant, always in arrival order, to the peer at its best batch size: the median of the rounds' ratios "
        "(mark, smallest–largest). Latencies: smaller is better. Accuracy is against PyTorch's f32.", "",
        ratio_tables(groups, run["marks"]),
        "## Valid tokens per second; latency p50 in ms", "",
        "In parentheses the padded token budget of the peer's best batches.", "",
        throughput(groups, columns),
        *(["## Failed", "", *failed, ""] if failed else []),
    ])


def as_json(groups):
    return [{
        "model": group.model, "dtype": group.dtype, "load_average": group.load_average, "engines": group.versions,
        "failures": group.failures, "accuracy": group.accuracy, "ceiling_flops": group.ceilings,
        "series": [{"engine": series.engine, "column": series.column.name,
                    "batching": str(series.batching) if series.batching else None, "median": series.median,
                    "samples": series.samples, "p99_ms": series.p99} for series in group.series],
    } for group in groups]
