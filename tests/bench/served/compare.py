# SPDX-License-Identifier: Apache-2.0
"""Measures Attendant's server beside Triton with OpenVINO, and beside its own engine; compare.sh makes what it needs."""

import argparse
import datetime
import importlib.metadata
import itertools
import json
import pathlib
import statistics
import sys

import clients
import report
import servers

PEERS = pathlib.Path(__file__).parent.parent / "peers"
sys.path.append(str(PEERS))
import engine as engines  # noqa: E402
import machine  # noqa: E402
import workloads  # noqa: E402

CASES = ("triton", "overhead")
ENGINE_BATCH_TOKENS = 1024  # the server's own default
SETTINGS = ("dtype", "threads", "rounds", "seconds", "concurrency", "load_concurrency", "triton", "cases")


def numbers(text):
    return [int(word) for word in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(prog="compare.sh", description=__doc__)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES), help=",".join(CASES))
    parser.add_argument("--dtype", default="bf16", help="of both servers: bf16 or f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of each window; perf_analyzer takes three of them")
    parser.add_argument("--concurrency", type=numbers, default=[1, 8, 32], help="perf_analyzer's: 1,8,32")
    parser.add_argument("--load_concurrency", type=int, default=64)
    parser.add_argument("--triton", type=lambda text: text.split(","), default=["4", "1", "sorted"],
                        help="its dynamic batcher's largest batches, and a model that sorts its own: 4,1,sorted")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="build/served")
    for name in ("bin", "minilm", "openvino", "perf_analyzer", "home"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    for name in ("command", "revision"):
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
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


def compare_triton(options, log):
    """In turn: the same concurrency of each server, the others stopped. By client, server and concurrency, in rounds."""
    started = [servers.triton(options, options.home / f"triton-{kind}", log, kind) for kind in options.triton]
    started.append(servers.attendant(options, log))
    ask = {"perf_analyzer": clients.perf_analyzer,
           "attendant load": clients.shuffled}
    found = {client: {server.name: {} for server in started} for client in ask}
    try:
        for number, concurrency, client, server in itertools.product(
                range(options.rounds), options.concurrency, ask, started):
            note(f"round {number + 1} of {options.rounds}, {client}, concurrency {concurrency}: {server.name}")
            server.go_on()
            found[client][server.name].setdefault(str(concurrency), []).append(ask[client](options, server, concurrency))
            server.pause()
    finally:
        for server in started:
            server.close()
    return found


def compare_overhead(options, lens, log):
    """In turn: the engine alone on the lengths that are then served."""
    engine = engines.Engine(engines.command("attendant", options.home, options.dtype, options), options, log)
    server = servers.attendant(options, log)
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
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("nvidia-pytriton", "openvino", "tokenizers")]
    run = {"command": options.command, "revision": options.revision, "begin": now(), "versions": versions,
           "load_average": machine.load_average(), "machine": machine.describe(), "cpus": machine.pin(options.threads),
           "settings": {name: getattr(options, name) for name in SETTINGS},
           "texts": {"count": len(lens), "mean": statistics.mean(lens), "median": statistics.median(lens), "max": max(lens)}}
    found, overhead = {}, {}
    with open(options.output / "servers.log", "w") as log:
        if "triton" in options.cases:
            found = compare_triton(options, log)
        if "overhead" in options.cases:
            overhead = compare_overhead(options, lens, log)
    run["end"] = now()
    marks = report.marks_of(found, overhead)
    (options.output / "served.md").write_text(report.markdown(run, found, overhead, marks))
    (options.output / "served.json").write_text(json.dumps(
        run | {"marks": marks, "clients": found, "overhead": overhead}, indent=1) + "\n")
    print(report.mark_table(marks))
    print(f"{options.output}/served.md and served.json hold the whole run.")


main()
