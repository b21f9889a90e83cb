# SPDX-License-Identifier: Apache-2.0
"""What asks the servers: Triton's perf_analyzer, and Attendant's own load generator."""

import csv
import json
import re
import subprocess
import tempfile
import urllib.request

TRIALS = 3


class ClientError(Exception):
    pass


def run(arguments, seconds):
    done = subprocess.run([str(argument) for argument in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60 + 20 * seconds, check=False)
    if done.returncode != 0:
        raise ClientError(f"{arguments[0]} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def perf_analyzer(options, server, concurrency):
    """Inferences per second and latencies in ms, over three windows; it never settles to its own taste on two cores.

    One thread with all slots: each thread's slots begin at the list's start and step by the number of threads, so that
    by default all slots send the same text at the same time, and 32 of them see every 32nd text only.
    """
    with tempfile.NamedTemporaryFile(suffix=".csv") as table:
        run([options.perf_analyzer, "-i", "grpc", "-u", server.grpc, "-m", "minilm", "--input-data", options.texts,
             "--concurrency-range", concurrency, "--measurement-interval", int(1000 * options.seconds),
             "--stability-percentage", 999, "--max-trials", TRIALS, "--async", "--max-threads", 1, "-f", table.name], TRIALS * options.seconds)
        (row,) = csv.DictReader(open(table.name))
    latencies = {name: float(row[f"{name} latency"]) / 1000 for name in ("p50", "p90", "p95", "p99")}
    return {"inferences_per_second": float(row["Inferences/Second"]), **{f"{k}_ms": v for k, v in latencies.items()}}


def valid_tokens(server):
    """That the server has computed so far."""
    with urllib.request.urlopen(server.metrics_url, timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(r'^attendant_tokens_total\{.*kind="valid".*\} (\S+)$', text, re.MULTILINE)
    return sum(map(float, found))


def load(options, server, concurrency, payload, protocol):
    return json.loads(run([options.bin / "attendant", "load", "--protocol", protocol, "--server", server.grpc, "--model",
                           "minilm", "--concurrency", concurrency, "--connections", 1, "--warmup", "1s", "--duration",
                           f"{options.seconds}s", "--json", *payload], options.seconds))


def shuffled(options, server, concurrency):
    """The same from Attendant's load generator, which shuffles the texts."""
    report = load(options, server, concurrency, ["--texts", options.lines], "kserve")
    return {"inferences_per_second": report["requests_per_s"],
            **{f"{name}_ms": 1000 * report["latency_s"][name] for name in ("p50", "p90", "p99")}}


def server_cost(options, server, payload):
    """Tokens for each second of the server's processors, requests always outstanding."""
    tokens, cpu = valid_tokens(server), server.cpu_seconds()
    report = load(options, server, options.load_concurrency, payload, "attendant")
    tokens, cpu = valid_tokens(server) - tokens, server.cpu_seconds() - cpu
    return {"tokens_per_cpu_second": tokens / cpu, "load": report}
