# SPDX-License-Identifier: Apache-2.0
"""Measures Attendant's server beside Triton with OpenVINO and infinity, beside its own engine, and its HTTP beside its gRPC;
compare.sh makes what it needs."""

import argparse
import datetime
import importlib.metadata
import itertools
import json
import math
import operator
import pathlib
import statistics
import sys

import choice
import clients
import report
import servers

PEERS = pathlib.Path(__file__).parent.parent / "peers"
sys.path.append(str(PEERS))
import engine as engines  # noqa: E402
import machine  # noqa: E402
import ways  # noqa: E402
import workloads  # noqa: E402

CASES = ("triton", "overhead", "http", "doors")
DEFAULT_CASES = ["triton", "overhead"]
DOOR_CONCURRENCY = (1, 32)
LEAST_COSINE = 0.99  # of two servers' embeddings of one text; bf16 differs by less
ENGINE_BATCH_TOKENS = 1024  # the server's own default
SETTINGS = ("dtype", "threads", "rounds", "seconds", "concurrency", "load_concurrency", "triton", "cases")


def numbers(text):
    return [int(word) for word in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(prog="compare.sh", description=__doc__)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=DEFAULT_CASES, help=",".join(CASES))
    parser.add_argument("--dtype", default="bf16", help="of both servers: bf16 or f32")
    parser.add_argument("--threads", type=int, default=2,
                        help="of each server: every split into instances or replicas is tried")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of each window; perf_analyzer takes three of them")
    parser.add_argument("--concurrency", type=numbers, default=[1, 8, 32], help="of the cases triton and http: 1,8,32")
    parser.add_argument("--load_concurrency", type=int, default=64)
    parser.add_argument("--triton", type=lambda text: text.split(","), default=["4", "1", "sorted"],
                        help="its dynamic batcher's largest batches, and a model that sorts its own: 4,1,sorted")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="build/served")
    for name in ("bin", "minilm", "openvino", "perf_analyzer", "home", "infinity"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    for name in ("command", "revision"):
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"--cases has {', '.join(sorted(unknown))}: it must be some of {', '.join(CASES)}")
    options.texts = options.output / "perf_analyzer.json"
    options.lines = options.output / "texts.txt"
    options.engine_bench, options.max_batch_tokens = options.bin / "engine_bench", ENGINE_BATCH_TOKENS
    return options


def note(text):
    print(f"[served] {text}", file=sys.stderr)


def write_texts(options):
    texts = json.loads((options.home / "texts.json").read_text())
    options.texts.write_text(json.dumps({"data": [{"text": [text["text"]]} for text in texts]}))
    options.lines.write_text("".join(text["text"] + "\n" for text in texts))
    return [text["tokens"] for text in texts]


def whole(options):
    """One stream of all threads."""
    return ways.Split(1, options.threads)


def start_attendants(options, log):
    """By split of the threads."""
    return {split: servers.attendant(options, log, split) for split in ways.splits(options.threads)}


def start_tritons(options, log, kind):
    """By split of the threads."""
    return {split: servers.triton(options, options.home / f"triton-{kind}-{split}", log, kind, split)
            for split in ways.splits(options.threads)}


def compare_triton(options, log):
    """In turn: the same concurrency of each server at its best split, the others stopped. By client, server and
    concurrency, in rounds."""
    started = {}
    ask = {"perf_analyzer": clients.perf_analyzer,
           "attendant load": clients.shuffled}
    try:
        for kind in options.triton:
            started[servers.triton_name(kind)] = start_tritons(options, log, kind)
        started["Attendant"] = start_attendants(options, log)
        note("choosing each server's split of the threads")
        best = choice.best_splits(started, options.concurrency, lambda server, concurrency: clients.perf_analyzer(
            choice.short(options), server, concurrency))
        found = {client: {name: {} for name in started} for client in ask}
        for number, concurrency, client, name in itertools.product(
                range(options.rounds), options.concurrency, ask, started):
            split = best[name, concurrency]
            note(f"round {number + 1} of {options.rounds}, {client}, concurrency {concurrency}: {name}, {split}")
            measured = choice.in_turn(started[name][split], lambda server: ask[client](options, server, concurrency))
            found[client][name].setdefault(str(concurrency), []).append(measured | {"split": str(split)})
    finally:
        for server in choice.all_of(started):
            server.close()
    return found


def compare_http(options, log):
    """Triton over KServe, infinity over OpenAI's protocol, Attendant over both; one HTTP client. As compare_triton."""
    found, embeddings, attendants = {}, {}, {}
    try:
        attendants["Attendant"] = start_attendants(options, log)
        kind = options.triton[0]
        peers = {"kserve-binary": (servers.triton_name(kind), lambda: start_tritons(options, log, kind)),
                 "openai-base64": ("infinity", lambda: {whole(options): servers.infinity(options, log)})}
        for way, (peer, start) in peers.items():
            started = {peer: start()}
            try:
                found[report.HTTP_CLIENTS[way]] = compare_way(options, started | attendants, way, embeddings)
            finally:
                for server in choice.all_of(started):
                    server.close()
    finally:
        for server in choice.all_of(attendants):
            server.close()
    check_same(embeddings)
    return found


def compare_way(options, started, way, embeddings):
    """Servers beside each other over one protocol; `embeddings`, by server and way, is filled."""
    note(f"{way}: choosing each server's split of the threads")
    best = choice.best_splits(started, options.concurrency, lambda server, concurrency: clients.http(
        choice.short(options), server, concurrency, way))
    found = {name: {} for name in started}
    for number, concurrency, name in itertools.product(range(options.rounds), options.concurrency, started):
        split = best[name, concurrency]
        note(f"round {number + 1} of {options.rounds}, {way}, concurrency {concurrency}: {name}, {split}")
        measured = choice.in_turn(started[name][split], lambda server: clients.http(options, server, concurrency, way))
        embeddings[name, way] = measured.pop("embedding")
        found[name].setdefault(str(concurrency), []).append(measured | {"split": str(split)})
    return found


def check_same(embeddings):
    """Servers that answer other embeddings do other work."""
    (first, expected), *others = embeddings.items()
    for name, found in others:
        product = sum(map(operator.mul, expected, found)) if len(found) == len(expected) else 0
        cosine = product / (math.hypot(*expected) * math.hypot(*found))
        if cosine < LEAST_COSINE:
            raise clients.ClientError(f"{name} and {first} embed one text differently: cosine {cosine:.4f}")


def compare_doors(options, log):
    """Attendant alone: every way in, in turn."""
    server = servers.attendant(options, log, whole(options))
    doors = {"gRPC": lambda at: clients.perf_analyzer(options, server, at),
            "KServe, binary": lambda at: clients.perf_analyzer(options, server, at, "http"),
            "OpenAI, base64": lambda at: clients.http(options, server, at, "openai-base64"),
            "OpenAI, floats": lambda at: clients.http(options, server, at, "openai-float")}
    found = {way: {} for way in doors}
    try:
        server.go_on()
        for number, concurrency, way in itertools.product(range(options.rounds), DOOR_CONCURRENCY, doors):
            note(f"round {number + 1} of {options.rounds}, concurrency {concurrency}: {way}")
            measured = clients.with_cost(server, lambda: doors[way](concurrency))
            measured.pop("embedding", None)
            found[way].setdefault(str(concurrency), []).append(measured)
    finally:
        server.close()
    return found


def compare_overhead(options, lens, log):
    """In turn: the engine alone on the lengths that are then served."""
    one = whole(options)
    engine = engines.Engine(engines.command("attendant", options.home, options.dtype, options, one), one.threads, log)
    server = servers.attendant(options, log, one)
    payloads = {"ids": (workloads.mixed_lens(), ["--lengths", "mixed"]), "text": (lens, ["--texts", options.lines])}
    found = {kind: [] for kind in payloads}
    try:
        for number in range(options.rounds):
            for kind, (kind_lens, payload) in payloads.items():
                note(f"round {number + 1} of {options.rounds}, {kind}: the engine, then the server")
                alone = engine.ask("rate " + " ".join(map(str, kind_lens)))
                server.go_on()
                found[kind].append({"engine": alone, "server": clients.server_cost(options, server, payload)})
                server.pause()
    finally:
        server.close()
        engine.close()
    return found


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    lens = write_texts(options)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("nvidia-pytriton", "openvino", "tokenizers", "aiohttp")]
    if "http" in options.cases:
        versions += (pathlib.Path(__file__).parent / "requirements_infinity.txt").read_text().split()
    run = {"command": options.command, "revision": options.revision, "begin": now(), "versions": versions,
           "load_average": machine.load_average(), "machine": machine.describe(), "cpus": machine.pin(options.threads),
           "settings": {name: getattr(options, name) for name in SETTINGS},
           "texts": {"count": len(lens), "mean": statistics.mean(lens), "median": statistics.median(lens), "max": max(lens)}}
    found, overhead, doors = {}, {}, {}
    with open(options.output / "servers.log", "w") as log:
        if "triton" in options.cases:
            found |= compare_triton(options, log)
        if "http" in options.cases:
            found |= compare_http(options, log)
        if "overhead" in options.cases:
            overhead = compare_overhead(options, lens, log)
        if "doors" in options.cases:
            doors = compare_doors(options, log)
    run["end"] = now()
    marks = report.marks_of(found, overhead, doors)
    (options.output / "served.md").write_text(report.markdown(run, found, overhead, doors, marks))
    (options.output / "served.json").write_text(json.dumps(
        run | {"marks": marks, "clients": found, "overhead": overhead, "doors": doors}, indent=1) + "\n")
    print(report.mark_table(marks))
    print(f"{options.output}/served.md and served.json hold the whole run.")


main()
