#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the server under more load than it can take, on this machine, with `attendant load` as the client:

  overload  three times the capacity, open loop: goodput, how fast refusals come, memory
  deadlines the same, with clients that wait only --deadline: answers in time
  flood     64-token requests beside a flood of 512-token requests at 80 % load
  whale     64-token requests beside one request of 4,096 sequences of 64 tokens
  attention encoders beside a flood of large attention requests

Prints each figure beside its mark. Server and clients share the processors: run it on an idle machine."""

import argparse
import contextlib
import json
import math
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "integration"))
from harness import settings  # noqa: E402
from harness.server import Server  # noqa: E402

MODEL = "minilm"
BATCH = 8  # sequences in a request of the load: few calls, so that the clients take little of the processors


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder of a checkpoint, as deploy/fetch-model.sh prints")
    parser.add_argument("--seconds", type=int, default=10, help="of each measurement")
    parser.add_argument("--deadline", default="1s", help="of the clients in `deadlines`")
    return parser.parse_args()


def command(server, *flags):
    return [settings.bin_dir() / "attendant", "load", f"--server={server.grpc}", f"--model={MODEL}", "--json",
            "--warmup=2s", *flags]


def load(server, *flags):
    done = subprocess.run(command(server, *flags), stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


@contextlib.contextmanager
def beside(server, *flags):
    """A load that runs meanwhile. Ends the program where it was none: figures beside it would say nothing."""
    with subprocess.Popen(command(server, *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield
            if process.poll() is not None:
                raise SystemExit(f"the load beside it ended with {process.returncode}: {process.communicate()}")
            process.send_signal(signal.SIGINT)
            report, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    check_disturbing(json.loads(report)["requests"])


def check_disturbing(requests):
    """`requests` as a report counts them. Those that were cut off were computed too: one of 4,096 sequences takes longer
    than the measurement."""
    if requests["ok"] + requests["cut_off"] <= requests["failed"]:
        raise SystemExit(f"the load beside it was refused, not computed: {requests}")


@contextlib.contextmanager
def serving(options, *flags):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(pathlib.Path(folder), {MODEL: options.model}, *flags)
        try:
            while server.get("/readyz")[0] != 200:
                time.sleep(0.1)
            yield server
        finally:
            server.process.terminate()
            server.process.wait()


def rss_mib(server):
    for line in pathlib.Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def show(name, figure, mark=""):
    print(f"{name:58} {figure:>12}   {mark}", flush=True)


def capacity(server, options, lengths):
    """Requests a second, and seconds of a full batch, in a closed loop that keeps the queue full."""
    report = load(server, f"--duration={options.seconds}s", "--concurrency=16", f"--batch={BATCH}",
                  f"--lengths={lengths}")
    if report["server_mean_s"] is None:
        raise SystemExit(f"no request was answered: {report['requests']} {report['errors']}")
    return report["requests_per_s"], report["server_mean_s"]["compute"]


def measure_overload(options):
    with serving(options, "--max_queued_tokens=16384") as server:
        most, _ = capacity(server, options, "mixed")
        before = rss_mib(server)
        report = load(server, f"--duration={options.seconds}s", f"--rate={3 * most:.1f}", f"--batch={BATCH}")
        refused = report["errors"].get("RESOURCE_EXHAUSTED", {"count": 0, "latency_s": {"p99": 0}})
        show("capacity, requests of 8 sequences a second", f"{most:.1f}")
        show("overload: goodput of the capacity", f"{report['requests_per_s'] / most:.1%}", "mark 95 %")
        show("overload: refused", f"{refused['count']}")
        show("overload: refused within, p99", f"{1e3 * refused['latency_s']['p99']:.1f} ms", "mark 10 ms")
        show("overload: memory grows by", f"{rss_mib(server) - before:.1f} MiB", "mark: flat")


def measure_deadlines(options):
    with serving(options) as server:
        most, batch = capacity(server, options, "mixed")
        report = load(server, f"--duration={options.seconds}s", f"--rate={3 * most:.1f}", f"--batch={BATCH}",
                      f"--timeout={options.deadline}")
        show(f"deadlines of {options.deadline}: answered in time, of the capacity",
             f"{report['requests_per_s'] / most:.1%}", "mark 95 %")
        errors = report["errors"].get("DEADLINE_EXCEEDED", {"count": 0, "latency_s": {"p50": 0}})
        show("deadlines: half of the others knew after", f"{1e3 * errors['latency_s']['p50']:.1f} ms")
        show("a batch computes for", f"{1e3 * batch:.1f} ms")


def measure_flood(options):
    with serving(options) as server:
        most, batch = capacity(server, options, "fixed:512")
        with beside(server, "--duration=1h", f"--rate={0.8 * most:.2f}", f"--batch={BATCH}", "--lengths=fixed:512"):
            time.sleep(3)
            report = load(server, f"--duration={options.seconds}s", "--rate=20", "--lengths=fixed:64")
        p99 = report["latency_s"]["p99"]
        show("flood: a full batch", f"{1e3 * batch:.1f} ms")
        show("flood: 64 tokens beside 512, p99", f"{1e3 * p99:.1f} ms")
        show("flood: in full batches", f"{p99 / batch:.2f}", "mark 1.5")


def measure_whale(options):
    with serving(options) as server:
        _, batch = capacity(server, options, "fixed:64")
        alone = load(server, f"--duration={options.seconds}s", "--rate=20", "--lengths=fixed:64")
        with beside(server, "--duration=1h", "--concurrency=1", "--batch=4096", "--lengths=fixed:64", "--timeout=10m"):
            time.sleep(3)
            report = load(server, f"--duration={options.seconds}s", "--rate=20", "--lengths=fixed:64")
        waited = report["server_mean_s"]["queue"]
        longest = report["latency_s"]["p99"] - alone["latency_s"]["p50"]
        show("whale: a full batch", f"{1e3 * batch:.1f} ms")
        show("whale: others wait in the queue, mean, in full batches", f"{waited / batch:.2f}")
        show("whale: others wait longer than alone, p99, in full batches", f"{longest / batch:.2f}", "mark 2")


def write_npy(path, shape):
    """Zeros as f32: their values do not change what attention takes."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        file.truncate(file.tell() + 4 * math.prod(shape))


@contextlib.contextmanager
def attention_flood(server, folder, callers):
    """So many callers, each with one request of some 0.4 s on two processors after the other. Ends the program where one
    fails."""
    stop = threading.Event()
    ended = []
    write_npy(folder / "query.npy", (1, 20000, 64))

    def call():
        while not stop.is_set():
            ended.append(subprocess.run([settings.bin_dir() / "attendant", "attend", f"--server={server.grpc}",
                                         f"--query={folder / 'query.npy'}", "--timeout=1m"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, check=False))

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    failed = [one.stderr for one in ended if one.returncode != 0]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(ended)} attention requests failed: {failed[0]}")


def measure_attention(options):
    with serving(options) as server, tempfile.TemporaryDirectory() as folder:
        alone, _ = capacity(server, options, "mixed")
        with attention_flood(server, pathlib.Path(folder), callers=3):
            time.sleep(1)
            beside_it, _ = capacity(server, options, "mixed")
        show("attention: encoders beside it, of their capacity", f"{beside_it / alone:.1%}")


def main():
    options = arguments()
    for measure in (measure_overload, measure_deadlines, measure_flood, measure_whale, measure_attention):
        measure(options)


if __name__ == "__main__":
    main()
