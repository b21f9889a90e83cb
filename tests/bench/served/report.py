# SPDX-License-Identifier: Apache-2.0
"""The marks of served models, and a run as Markdown. Every value is a median of rounds, every ratio of the same round."""

import itertools
import statistics

RATES = ("inferences_per_second", "p50_ms", "p99_ms")
HTTP_CLIENTS = {"kserve-binary": "HTTP, KServe", "openai-base64": "HTTP, OpenAI"}  # by the way of http_client.py
MARKED_CLIENTS = ("perf_analyzer", *HTTP_CLIENTS.values())
CLIENT_MARKS = (  # field, concurrency, bound on Attendant / its peer, smaller is better
    ("inferences_per_second", 32, 4, False),
    ("p99_ms", 32, 1 / 4, True),
    ("p50_ms", 1, 0.4, True),
)
OVERHEAD_MARK = 0.95
# Processor time for a token over HTTP, to that of gRPC, at this concurrency.
COST_MARKS = {"KServe, binary": 1.10, "OpenAI, base64": 1.10, "OpenAI, floats": 1.25}
COST_CONCURRENCY = "32"
# What HTTP may add to the median latency at concurrency 1; both by perf_analyzer.
LATENCY_WAY, LATENCY_CONCURRENCY, LATENCY_MARK_MS = "KServe, binary", "1", 0.3


def median(rounds, field):
    return statistics.median(found[field] for found in rounds)


def mark(name, values, bound, at_most=False):
    value = statistics.median(values)
    return {"name": name, "value": value, "low": min(values), "high": max(values), "mark": bound, "at_most": at_most,
            "reached": value <= bound if at_most else value >= bound}


def client_marks(client, by_server):
    found = []
    for peer, (field, concurrency, bound, at_most) in itertools.product(by_server, CLIENT_MARKS):
        rounds = list(zip(by_server["Attendant"].get(str(concurrency), []), by_server[peer].get(str(concurrency), [])))
        values = [a[field] / b[field] for a, b in rounds]
        if values and peer != "Attendant":
            at = f" [{rounds[0][0]['split']} : {rounds[0][1]['split']}]" if "split" in rounds[0][1] else ""
            found.append(mark(f"{client}: {field}, concurrency {concurrency}, to {peer}{at}", values, bound, at_most))
    return found


def door_marks(doors):
    found = []
    grpc = doors.get("gRPC", {})
    for way, bound in COST_MARKS.items():
        rounds = zip(grpc.get(COST_CONCURRENCY, []), doors.get(way, {}).get(COST_CONCURRENCY, []))
        values = [a["tokens_per_cpu_second"] / b["tokens_per_cpu_second"] for a, b in rounds]
        if values:
            found.append(mark(f"CPU time per token, {way}, to gRPC", values, bound, at_most=True))
    rounds = zip(grpc.get(LATENCY_CONCURRENCY, []), doors.get(LATENCY_WAY, {}).get(LATENCY_CONCURRENCY, []))
    values = [b["p50_ms"] - a["p50_ms"] for a, b in rounds]
    if values:
        found.append(mark(f"p50 over {LATENCY_WAY}, ms above gRPC", values, LATENCY_MARK_MS, at_most=True))
    return found


def marks_of(clients, overhead, doors):
    """`clients`: client -> server -> concurrency -> rounds; `overhead`: ids, text -> rounds of both sides; `doors`: way ->
    concurrency -> rounds."""
    found = []
    for client in MARKED_CLIENTS:
        found += client_marks(client, clients.get(client, {}))
    found += door_marks(doors)
    for kind, rounds in overhead.items():
        values = [one["server"]["tokens_per_cpu_second"] / one["engine"]["tokens_per_cpu_second"] for one in rounds]
        if values:
            found.append(mark(f"tokens per CPU second with {kind}, to the engine alone", values, OVERHEAD_MARK))
    return found


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def mark_table(found):
    return table(["", "ratio", "smallest–largest", "mark", ""], [
        [one["name"], f"{one['value']:.3f}", f"{one['low']:.3f}–{one['high']:.3f}",
         f"{'≤' if one['at_most'] else '≥'} {one['mark']:g}", "" if one["reached"] else "**missed**"] for one in found])


def cpu_us_per_token(rounds):
    """Of the server; a dash where it was not measured."""
    if "tokens_per_cpu_second" not in rounds[0]:
        return "–"
    return f"{1e6 / median(rounds, 'tokens_per_cpu_second'):.4g}"


def client_table(clients):
    return table(["client", "server", "concurrency", "split", "inferences/s", "p50, ms", "p99, ms", "CPU µs per token"], [
        [client, name, concurrency, rounds[0].get("split", "–"), *(f"{median(rounds, field):.4g}" for field in RATES),
         cpu_us_per_token(rounds)]
        for client, by_server in clients.items() for name, by_concurrency in by_server.items()
        for concurrency, rounds in by_concurrency.items()])


def door_table(doors):
    return table(["way", "concurrency", "inferences/s", "p50, ms", "p99, ms", "CPU µs per token", "outside of batches"], [
        [way, concurrency, *(f"{median(rounds, field):.4g}" for field in RATES), cpu_us_per_token(rounds),
         f"{median(rounds, 'own_us_per_token'):.3g}"]
        for way, by_concurrency in doors.items() for concurrency, rounds in by_concurrency.items()])


def overhead_table(overhead):
    rows = []
    for kind, rounds in overhead.items():
        if rounds:
            engine, server = [one["engine"] for one in rounds], [one["server"] for one in rounds]
            rows.append([kind, f"{median(engine, 'tokens_per_cpu_second'):,.0f}",
                         f"{median(server, 'tokens_per_cpu_second'):,.0f}",
                         f"{statistics.median(one['load']['tokens_per_s'] for one in server):,.0f}"])
    return table(["", "engine, tokens per CPU second", "server, tokens per CPU second", "server, tokens/s"], rows)


def markdown(run, clients, overhead, doors, found):
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
        "Split: instances of Triton's model, or Attendant's replicas, x threads of each; the best of a first look.", "",
        client_table(clients),
        "## Attendant over HTTP and over gRPC", "",
        door_table(doors),
        f"## The server's own cost: attendant load, concurrency {settings['load_concurrency']}", "", overhead_table(overhead)])
