#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second and memory of a server, by number format and threads: the table of docs/sizing.md.

    tests/integration/python.sh tests/bench/sizing/sizing.py [--model DIR] [--threads 1,2] [--dtypes f32,bf16,int8]

Each row is a server of its own and a closed loop of random token ids: lengths log-normal with median 48, batches of
requests enough to keep it busy.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))

from harness import exposition, settings  # noqa: E402
from harness.server import Server  # noqa: E402

HEADER = ("| format | threads | tokens/s | p99, ms | weights, MiB | arenas, MiB | resident, MiB |\n"
          "|---|---|---|---|---|---|---|")


def measure(folder, model, dtype, threads, seconds):
    """One row."""
    server = Server(folder, {"m": model}, f"--dtype={dtype}", f"--threads={threads}", "--attention=off")
    try:
        server.wait_ready()
        load = subprocess.run(
            [settings.bin_dir() / "attendant", "load", f"--server={server.grpc}", "--json", f"--duration={seconds}s",
             "--warmup=1s", "--connections=2", "--concurrency=16"], check=True, stdout=subprocess.PIPE, text=True)
        report = json.loads(load.stdout)
        page = exposition.Page(server.get("/metrics")[1])
        mib = [page.value(name, **labels) / (1 << 20) for name, labels in (
            ("attendant_model_weight_bytes", {"model": "m"}), ("attendant_model_arena_bytes", {"model": "m"}),
            ("process_resident_memory_bytes", {}))]
        return report, mib
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, help="a checkpoint; without it, all-MiniLM-L6-v2")
    parser.add_argument("--dtypes", default="f32,bf16,int8")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}")
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    print(HEADER)
    for dtype in arguments.dtypes.split(","):
        for threads in map(int, arguments.threads.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                report, mib = measure(pathlib.Path(folder), arguments.model or settings.model_dir(), dtype, threads,
                                      arguments.seconds)
            print(f"| {dtype} | {threads} | {report['tokens_per_s']:,.0f} | {1000 * report['latency_s']['p99']:.0f} | "
                  + " | ".join(f"{value:,.0f}" for value in mib) + " |", flush=True)


if __name__ == "__main__":
    main()
