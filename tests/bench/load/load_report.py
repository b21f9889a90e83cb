# SPDX-License-Identifier: Apache-2.0
"""The marks of a load generator, and a run as Markdown. Every value is a median of rounds, every ratio of the same round."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "served"))
from report import mark, mark_table, median, table  # noqa: E402

PERCENTILES = ("p50", "p90", "p99")
COST_MARK = 2  # requests for a CPU second
AGREEMENT_MARK = 0.05  # of the percentiles
OWN = "attendant load"  # how the names of its ways begin
PEER = "perf_analyzer"


def per_cpu_second(measured):
    return measured["requests"] / measured["cpu_s"]


def own_rounds(clients):
    (own,) = (rounds for name, rounds in clients.items() if name.startswith(OWN))
    return own


def cost_marks(sent, clients):
    """The load generator to each way of its peer, of the same round."""
    own = own_rounds(clients)
    return [mark(f"requests per CPU second, {sent}, to {name}",
                 [per_cpu_second(ours) / per_cpu_second(theirs) for ours, theirs in zip(own, rounds)], COST_MARK)
            for name, rounds in clients.items() if not name.startswith(OWN)]


def agreement_marks(sent, clients):
    """The load generator beside its peer as it comes: the first of the peer's ways."""
    peers = next(rounds for name, rounds in clients.items() if name.startswith(PEER))
    found = []
    for name in PERCENTILES:
        off = [abs(own[f"{name}_ms"] / peer[f"{name}_ms"] - 1) for own, peer in zip(own_rounds(clients), peers)]
        found.append(mark(f"{name}, {sent}, differs from {PEER}'s by", off, AGREEMENT_MARK, at_most=True))
    return found


def marks_of(null, real):
    """Both: what is sent -> client -> rounds."""
    return [each for judge, measured in ((cost_marks, null), (agreement_marks, real))
            for sent, clients in measured.items() for each in judge(sent, clients)]


def cost_table(null):
    rows = []
    for clients in null.values():
        for name, rounds in clients.items():
            rates = [per_cpu_second(measured) for measured in rounds]
            middle = sorted(rates)[len(rates) // 2]
            rows.append([name, f"{middle:,.0f}", f"{1e6 / middle:.3g}", f"{median(rounds, 'p50_ms'):.3g}",
                         f"{median(rounds, 'p99_ms'):.3g}"])
    return table(["null server", "requests per CPU second", "CPU µs per request", "p50, ms", "p99, ms"], rows)


def latency_table(real):
    return table(["Attendant", *(f"{name}, ms" for name in PERCENTILES)], [
        [name, *(f"{median(rounds, f'{each}_ms'):.4g}" for each in PERCENTILES)]
        for clients in real.values() for name, rounds in clients.items()])


def markdown(run, null, real, marks):
    machine = run["machine"]
    return "\n".join([
        "# attendant load beside perf_analyzer", "",
        f"`{run['command']}`, revision {run['revision']}", "",
        f"- {machine['cpu']} ({machine['family_model']}), {machine['online_cpus']} processors, Linux {machine['kernel']}, "
        f"load average before it {run['load_average']:.1f}",
        f"- {run['rounds']} rounds of {run['seconds']:g} s; requests outstanding: {run['null_concurrency']} at the null server, "
        f"{run['concurrency']} at Attendant's", "",
        mark_table(marks), cost_table(null), latency_table(real)])
