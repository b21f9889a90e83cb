# SPDX-License-Identifier: Apache-2.0
"""Runs as Markdown."""

import statistics

import marks

TITLES = {"attendant": "Attendant", "attendant-threads=1": "Attendant, one thread", "openvino": "OpenVINO", "onnxruntime": "ONNX Runtime",
          "ctranslate2": "CTranslate2", "pytorch": "PyTorch", "minilm": "MiniLM-L6", "bert-base": "BERT-base",
          "xlm-r-base": "XLM-R base", "mpnet-base": "MPNet base", "modernbert-base": "ModernBERT base"}


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cell(series):
    if series is None:
        return "–"
    return number(series.median) + (f" ({series.way})" if series.way else "")


def throughput(groups, columns):
    rows = []
    for group in groups:
        for name in group.versions:
            rows.append([TITLES[group.model], group.dtype, TITLES[name],
                         *(cell(group.best(name, column)) for column in columns)])
    return table(["model", "dtype", "engine", *columns], rows)


def mark_cell(one):
    bound = f"{'≤' if one['at_most'] else '≥'} {one['mark']:.3g}"
    peer = f" × {TITLES[one['peer']]}" if one["peer"] else ""
    ours, theirs = one.get("ways") or (None, None)
    at = f" [{' : '.join(filter(None, (ours, theirs)))}]" if ours else ""
    spread = f", {one['low']:.2f}–{one['high']:.2f}" if one["low"] != one["high"] else ""
    return f"{one['value']:.3f}{peer}{at} ({bound}{spread})" + ("" if one["reached"] else " **missed**")


def mark_table(outcomes, columns):
    rows = {}
    for one in outcomes:
        if one["column"] in columns:
            row = rows.setdefault(f"{TITLES[one['model']]} {one['dtype']}", {})
            row.setdefault(one["column"], []).append(mark_cell(one))
    return table(["", *columns],
                 [[name, *(", ".join(row.get(column, ["–"])) for column in columns)] for name, row in rows.items()])


def accuracy_cell(group, name, kind, field):
    is_marked = name == "attendant" and kind == marks.ACCURACY_TEXTS
    mark = marks.ACCURACY_MARKS.get(group.dtype, {}).get(field) if is_marked else None
    value = group.accuracy[name][kind][field]
    return f"{value:.5f}" + (f" (≥ {mark})" if mark else "") + (" **missed**" if mark and value < mark else "")


def accuracy_table(groups):
    fields = ("cosine_mean", "cosine_min", "spearman")
    return table(["dtype", "engine", "texts", *fields],
                 [[group.dtype, TITLES[name], f"{found['texts']} {kind.replace('_', ' ')}",
                   *(accuracy_cell(group, name, kind, field) for field in fields)]
                  for group in groups for name, kinds in group.accuracy.items() for kind, found in kinds.items()])


def long_table(groups):
    rows = [[TITLES[group.model], group.dtype, f"{int(length):,}", number(statistics.median(at["samples_ms"])),
             f"{at['flops'] / statistics.median(at['samples_ms']) / 1e6:,.0f}", f"{at['resident_bytes'] / 2**20:,.0f}"]
            for group in groups for length, at in sorted(group.long.items(), key=lambda item: int(item[0]))]
    return table(["model", "dtype", "tokens", "ms", "GFLOP/s", "memory, MiB"], rows)


def tail_table(groups):
    rows = [[TITLES[group.model], group.dtype, series.column, TITLES[series.engine], number(series.median),
             number(series.p99()), len(series.times_ms)]
            for group in groups for series in group.series if series.is_latency]
    return table(["model", "dtype", "", "engine", "p50, ms", "p99, ms", "calls"], rows)


def column_order(name):
    known = ("uniform 32", "uniform 128", "uniform 512", marks.ARRIVAL, marks.SORTED, *marks.LATENCY, marks.THREADS)
    return known.index(name) if name in known else len(known)


def ratio_tables(groups, outcomes):
    tails = tuple(f"p99 / p50, {column}" for column in marks.LATENCY)
    others = (marks.SCALING, marks.LONG_TIME, marks.LONG_MEMORY)
    parts = [mark_table(outcomes, columns) for columns in (marks.SPEED, marks.LATENCY + tails, others)
             if any(one["column"] in columns for one in outcomes)]
    if any(group.accuracy for group in groups):
        parts.append(accuracy_table(groups))
    return "\n".join(parts)


def failures(groups):
    return [f"- {TITLES[group.model]} {group.dtype}, {TITLES[name]}: {why}"
            for group in groups for name, why in group.failures.items()]


def run_lines(run):
    settings = run["settings"]
    return [f"- `{run['command']}`: {run['begin']} to {run['end']}, load average before it {run['load_average']:.1f}, "
            f"revision {run['revision']}, {settings['threads']} threads each, {settings['rounds']} rounds of "
            f"{settings['seconds']} s, {run['sequences']} mixed sequences of {run['tokens']} tokens"]


def markdown(runs, groups, outcomes, columns):
    machine = runs[-1]["machine"]
    about = [fields for group in groups for fields in group.versions.values()]
    isa = sorted({fields["isa"] for fields in about if "isa" in fields})
    failed = failures(groups)
    sections = [("Valid tokens per second; latency p50 in ms", throughput(groups, columns),
                 "In parentheses the engine's best streams x threads and the padded token budget of the peer's best batches.")]
    if any(series.is_latency for group in groups for series in group.series):
        sections.append(("Latency of one sequence at a time", tail_table(groups),
                         "All calls of all rounds; one stream of all threads."))
    if any(group.long for group in groups):
        sections.append(("One long sequence", long_table(groups), "Random weights, a process for each length."))
    return "\n".join([
        "# Attendant's engine and its peers, side by side", "",
        *(line for run in runs for line in run_lines(run)),
        f"- {machine['cpu']} (family/model {machine['family_model']}), processors {runs[-1]['cpus']} of "
        f"{machine['online_cpus']}, {machine['memory_gib']} GiB, Linux {machine['kernel']}",
        f"- CPU flags: {' '.join(machine['flags'])}",
        f"- {', '.join(sorted({fields['ready'] for fields in about}))}",
        f"- Attendant's instruction set: {', '.join(isa) or '–'}", "",
        "## Ratios, with the marks", "",
        "Attendant, always in arrival order, at its best streams x threads, to the peer at its best streams x threads "
        "and batch size: the median of the rounds' ratios [Attendant's way : the peer's] (mark, smallest–largest). "
        "Latencies: one sequence at a time on one stream of all threads; smaller is better. Accuracy is against "
        "PyTorch's f32.", "",
        ratio_tables(groups, outcomes),
        *(line for title, content, remark in sections for line in (f"## {title}", "", remark, "", content)),
        *(["## Failed", "", *failed, ""] if failed else []),
    ])
