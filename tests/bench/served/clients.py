# SPDX-License-Identifier: Apache-2.0
"""What asks the servers: Triton's perf_analyzer, Attendant's own load generator, and the HTTP client of http_client.py."""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

TRIALS = 3
HTTP_CLIENT = pathlib.Path(__file__).parent / "http_client.py"


class ClientError(Exception):
    pass


def run(arguments, seconds):
    done = subprocess.run([str(argument) for argument in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60 + 20 * seconds, check=False)
    if done.returncode != 0:
        raise ClientError(f"{arguments[0]} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def perf_analyzer(options, server, concurrency, protocol="grpc"):
    """Inferences per second and latencies in ms, over three windows; it never settles to its own taste on two cores.

    One thread with all slots: each thread's slots begin at the list's start and step by the number of threads, so that
    by default all slots send the same text at the same time, and 32 of them see every 32nd text only.
    """
    with tempfile.NamedTemporaryFile(suffix=".csv") as table:
        run([options.perf_analyzer, "-i", protocol, "-u", getattr(server, protocol), "-m", "minilm", "--input-data", options.texts,
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


def http(options, server, concurrency, way):
    """The same from http_client.py, with the server's processor time for each token."""
    cpu = server.cpu_seconds()
    report = json.loads(run([sys.executable, "-B", HTTP_CLIENT, f"http://{server.http}", way, options.home / "texts.json",
                             concurrency, options.seconds], options.seconds).splitlines()[-1])
    return report | {"tokens_per_cpu_second": report["tokens"] / (server.cpu_seconds() - cpu)}


def with_cost(server, ask):
    """What `ask` returns, and what Attendant's processors did meanwhile: tokens for each second, and the time for a token
    outside of the threads that compute."""
    before = valid_tokens(server), server.cpu_seconds(), server.own_seconds()
    report = ask()
    after = valid_tokens(server), server.cpu_seconds(), server.own_seconds()
    tokens, cpu, own = (now - then for now, then in zip(after, before))
    return report | {"tokens_per_cpu_second": tokens / cpu, "own_us_per_token": 1e6 * own / tokens}


def server_cost(options, server, payload):
    """The cost with requests always outstanding."""
    return with_cost(server, lambda: {"load": load(options, server, options.load_concurrency, payload, "attendant")})
