# SPDX-License-Identifier: Apache-2.0
"""Measures attendant load beside perf_analyzer, in turns, against the null server and against Attendant's; compare.sh
makes what it needs."""

import argparse
import contextlib
import csv
import dataclasses
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/bench/peers"), str(ROOT / "tests/integration")]
import machine  # noqa: E402
from harness import settings  # noqa: E402
from harness.server import serving  # noqa: E402

import load_report  # noqa: E402

PERF_ANALYZER = ROOT / "tests/integration/kserve/perf_analyzer.sh"
TRIALS = 3  # windows of perf_analyzer; attendant load gets as long in one
TEXT = "The harbour was quiet in the early morning and only a few boats went out"
NULL_MODEL, REAL_MODEL = "null", "minilm"
REAL_FLAGS = ("--threads=1", "--attention=off")  # another processor is the client's
PROTOCOLS = {"grpc": "kserve", "http": "kserve_http"}  # of attendant load, by the server's port


class ClientError(Exception):
    pass


def arguments():
    parser = argparse.ArgumentParser(prog="compare.sh", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help=f"of each window; a measurement takes {TRIALS} of them")
    parser.add_argument("--null_concurrency", type=int, default=16, help="requests outstanding at the null server")
    parser.add_argument("--concurrency", type=int, default=4, help="the same at Attendant's server")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="build/load")
    for name in ("command", "revision"):
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.texts, options.lines = options.output / "perf_analyzer.json", options.output / "texts.txt"
    return options


def note(text):
    print(f"[load] {text}", file=sys.stderr)


def timed(command, seconds):
    """The standard output of a command, and the processor seconds that it took."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(["timeout", str(60 + 10 * seconds), *map(str, command)], stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise ClientError(f"{command[0]} ended with {process.returncode}: {output.read()[-1500:]}{errors.read()[-500:]}")
        return output.read(), usage.ru_utime + usage.ru_stime


def attendant_load(options, server, port, model, concurrency, *flags):
    """Latencies in ms, and the processor seconds of the client."""
    output, cpu_s = timed([settings.bin_dir() / "attendant", "load", f"--protocol={PROTOCOLS[port]}",
                           f"--server={getattr(server, port)}", f"--model={model}", f"--texts={options.lines}", f"--concurrency={concurrency}", "--connections=1",
                           "--warmup=0", "--timeout=inf", f"--duration={TRIALS * options.seconds}s", "--json", *flags], options.seconds)
    report = json.loads(output)
    if report["requests"]["failed"]:
        raise ClientError(f"attendant load had errors: {report['errors']}")
    return {"cpu_s": cpu_s, **{f"{name}_ms": 1000 * report["latency_s"][name] for name in load_report.PERCENTILES}}


def perf_analyzer(options, server, port, model, concurrency, *flags):
    """The same; its windows never settle to its own taste on few processors."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as table:
        _, cpu_s = timed([PERF_ANALYZER, "-i", port, "-u", getattr(server, port), "-m", model, "--input-data", options.texts,
                          "--concurrency-range", concurrency, "--measurement-interval", int(1000 * options.seconds),
                          "--stability-percentage", 999, "--max-trials", TRIALS, "-f", table.name, *flags], options.seconds)
        (row,) = csv.DictReader(open(table.name))
    return {"cpu_s": cpu_s, **{f"{name}_ms": float(row[f"{name} latency"]) / 1000 for name in load_report.PERCENTILES}}


@dataclasses.dataclass(frozen=True)
class Client:
    ask: object
    port: str
    flags: tuple = ()

    def measure(self, options, server, model, concurrency):
        return self.ask(options, server, self.port, model, concurrency, *self.flags)


ASYNC = ("--async", "--max-threads", "1")
# By what they send, then by name.
CLIENTS = {
    "calls": {"attendant load": Client(attendant_load, "grpc"),
              "perf_analyzer": Client(perf_analyzer, "grpc"),
              "perf_analyzer --async": Client(perf_analyzer, "grpc", ASYNC)},
    "streams": {"attendant load --streaming": Client(attendant_load, "grpc", ("--streaming",)),
                "perf_analyzer --streaming": Client(perf_analyzer, "grpc", (*ASYNC, "--streaming"))},
    "HTTP": {"attendant load, HTTP": Client(attendant_load, "http"),
             "perf_analyzer, HTTP": Client(perf_analyzer, "http"),
             "perf_analyzer --async, HTTP": Client(perf_analyzer, "http", ASYNC)},
}
REAL = ("calls", "HTTP")  # what the percentiles are compared of


@dataclasses.dataclass
class NullServer:
    grpc: str
    http: str
    answered: int = 0  # after its context


@contextlib.contextmanager
def null_server():
    process = subprocess.Popen([settings.bin_dir() / "null_server"], stdout=subprocess.PIPE, text=True)
    found = NullServer(grpc=process.stdout.readline().strip(), http=process.stdout.readline().strip())
    try:
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        last = process.communicate(timeout=60)[0]
    found.answered = int(last)


def measure_null(options):
    """By what is sent and by client, in rounds. Each measurement has a null server of its own, which counts."""
    found = {sent: {name: [] for name in clients} for sent, clients in CLIENTS.items()}
    for number, (sent, clients) in itertools.product(range(options.rounds), CLIENTS.items()):
        for name, client in clients.items():
            note(f"round {number + 1} of {options.rounds}, null server: {name}")
            with null_server() as server:
                measured = client.measure(options, server, NULL_MODEL, options.null_concurrency)
            found[sent][name].append({**measured, "requests": server.answered})
    return found


def measure_real(options):
    """The same at Attendant's server, which does not count."""
    found = {sent: {name: [] for name in CLIENTS[sent]} for sent in REAL}
    with tempfile.TemporaryDirectory() as folder:
        with serving(pathlib.Path(folder), {REAL_MODEL: settings.model_dir()}, *REAL_FLAGS) as server:
            attendant_load(options, server, "grpc", REAL_MODEL, options.concurrency)  # warms it up
            for number, sent in itertools.product(range(options.rounds), REAL):
                for name, client in CLIENTS[sent].items():
                    note(f"round {number + 1} of {options.rounds}, Attendant: {name}")
                    found[sent][name].append(client.measure(options, server, REAL_MODEL, options.concurrency))
    return found


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    options.texts.write_text(json.dumps({"data": [{"text": [TEXT]}]}))
    options.lines.write_text(TEXT + "\n")
    run = {"command": options.command, "revision": options.revision, "machine": machine.describe(),
           "load_average": machine.load_average(), "rounds": options.rounds, "seconds": TRIALS * options.seconds,
           "null_concurrency": options.null_concurrency, "concurrency": options.concurrency}
    null, real = measure_null(options), measure_real(options)
    marks = load_report.marks_of(null, real)
    (options.output / "load.json").write_text(json.dumps({"run": run, "null": null, "real": real, "marks": marks}, indent=1))
    page = load_report.markdown(run, null, real, marks)
    (options.output / "load.md").write_text(page)
    print(page)


if __name__ == "__main__":
    try:
        main()
    except ClientError as error:
        sys.exit(f"[load] error: {error}")
