# SPDX-License-Identifier: Apache-2.0
"""The marks of served models, and a run as Markdown. Every value is a median of rounds, every ratio of the same round."""

import itertools
import statistics

MARKED_CLIENT = "perf_analyzer"
CLIENT_MARKS = (  # field, concurrency, bound on Attendant / Triton, smaller is better
    ("inferences_per_second", 32, 4, False),
    ("p99_ms", 32, 1 / 8, True),
    ("p50_ms", 1, 1 / 4, True),
)
OVERHEAD_MARKS = {"ids": 0.90, "text": 0.85}


def median(rounds, field):
    return statistics.median(found[field] for found in rounds)


def mark(name, values, bound, at_most=False):
    value = statistics.median(values)
    return {"name": name, "value": value, "low": min(values), "high": max(values), "mark": bound, "at_most": at_most,
            "reached": value <= bound if at_most else value >= bound}


def marks_of(clients, overhead):
    """`clients`: client -> server -> concurrency -> rounds; `overhead`: ids, text -> rounds of both sides."""
    found = []
    by_server = clients.get(MARKED_CLIENT, {})
    for peer, (field, concurrency, bound, at_most) in itertools.product(by_server, CLIENT_MARKS):
        rounds = zip(by_server["Attendant"].get(str(concurrency), []), by_server[peer].get(str(concurrency), []))
        values = [a[field] / b[field] for a, b in rounds]
        if values and peer != "Attendant":
            found.append(mark(f"{field}, concurrency {concurrency}, to {peer}", values, bound, at_most))
    for kind, rounds in overhead.items():
        values = [one["server"]["tokens_per_cpu_second"] / one["engine"]["tokens_per_cpu_second"] for one in rounds]
        if values:
            found.append(mark(f"tokens per CPU second with {kind}, to the engine alone", values, OVERHEAD_MARKS[kind]))
    return found


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def mark_table(found):
    return table(["", "ratio", "smallest–largest", "mark", ""], [
        [one["name"], f"{one['value']:.3f}", f"{one['low']:.3f}–{one['high']:.3f}",
         f"{'≤' if one['at_most'] else '≥'} {one['mark']:g}", "" if one["reached"] else "**missed**"] for one in found])


def client_table(clients):
    fields = ("inferences_per_second", "p50_ms", "p99_ms")
    return table(["client", "server", "concurrency", "inferences/s", "p50, ms", "p99, ms"], [
        [client, name, concurrency, *(f"{median(rounds, field):.4g}" for field in fields)]
        for client, by_server in clients.items() for name, by_concurrency in by_server.items()
        for concurrency, rounds in by_concurrency.items()])


def overhead_table(overhead):
    rows = []
    for kind, rounds in overhead.items():
        if rounds:
            engine, server = [one["engine"] for one in rounds], [one["server"] for one in rounds]
            rows.append([kind, f"{median(engine, 'tokens_per_cpu_second'):,.0f}",
                         f"{median(server, 'tokens_per_cpu_second'):,.0f}",
                         f"{statistics.median(one['load']['tokens_per_s'] for one in server):,.0f}"])
    return table(["", "engine, tokens per CPU second", "server, tokens per CPU second", "server, tokens/s"], rows)


def markdown(run, clients, overhead, found):
    machine, settings = run["machine"], run["settings"]
    return "\n".join([
        "# Served: MiniLM, real texts, clients on the same machine", "",
        f"`{run['command']}`", "",
        f"- {run['begin']} to {run['end']}, load average before it {run['load_average']:.1f}, revision {run['revision']}",
        f"- {machine['cpu']} (family/model {machine['family_model']}), processors {run['cpus']} of "
        f"{machine['online_cpus']}, {machine['memory_gib']} GiB, Linux {machine['kernel']}",
        f"- {', '.join(run['versions'])}",
        f"- {settings['dtype']}, {settings['threads']} threads each, {settings['rounds']} rounds of {settings['seconds']} s; "
        f"{run['texts']['count']} English texts: mean {run['texts']['mean']:.1f} tokens, median "
        f"{run['texts']['median']:g}, at most {run['texts']['max']}", "",
        "## Ratios, with the marks", "", mark_table(found),
        "## One text for each inference", "",
        client_table(clients),
        f"## The server's own cost: attendant load, concurrency {settings['load_concurrency']}", "", overhead_table(overhead)])
