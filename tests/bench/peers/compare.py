# SPDX-License-Identifier: Apache-2.0
"""Measures Attendant's engine and its peers side by side; compare.sh makes what it needs."""

import argparse
import datetime
import fcntl
import json
import pathlib
import subprocess
import sys

import machine
import marks
import measure
import peer
import report
import workloads
from results import Group

HERE = pathlib.Path(__file__).parent
BENCH = HERE.parent
GOLDEN_TEXTS = BENCH.parent / "golden" / "encoder" / "real_texts.json"
MODELS = ("bert-base", "minilm", "xlm-r-base", "mpnet-base", "modernbert-base")
DEFAULT_MODELS = ("bert-base", "minilm")
DTYPES = ("f32", "bf16", "int8")
CASES = ("uniform", "mixed", "sorted", "latency", "accuracy", "threads", "long")
QUICK_SEQUENCES = 48
SETTINGS = ("models", "dtypes", "cases", "engines", "uniform", "rounds", "seconds", "threads", "max_batch_tokens",
            "quick")


def words(choices):
    def parse(text):
        chosen = [word for word in text.split(",") if word]
        for word in chosen:
            if word not in choices:
                raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(choices)}")
        return [word for word in choices if word in chosen]
    return parse


def arguments():
    parser = argparse.ArgumentParser(prog="compare.sh", description=__doc__)
    parser.add_argument("--models", type=words(MODELS), help=",".join(MODELS))
    parser.add_argument("--dtypes", type=words(DTYPES), default=list(DTYPES), help=",".join(DTYPES))
    parser.add_argument("--cases", type=words(CASES), default=list(CASES), help=",".join(CASES))
    names = ("attendant", *peer.PEERS)
    parser.add_argument("--engines", type=words(names), default=list(names), help=",".join(names))
    parser.add_argument("--uniform", type=lambda text: tuple(map(int, text.split(","))), default=workloads.UNIFORM,
                        help="lengths of the case uniform: 32,128,512")
    parser.add_argument("--rounds", type=int, help="5; with --quick 2")
    parser.add_argument("--seconds", type=float, help="of each measurement: 1; with --quick 0.2")
    parser.add_argument("--threads", type=int, default=2,
                        help="of each engine: every split into streams is tried")
    parser.add_argument("--max_batch_tokens", type=int, default=4096, help="Attendant's token budget")
    parser.add_argument("--lengths", type=pathlib.Path,
                        help="a file of your own traffic's lengths, instead of the mixed ones")
    parser.add_argument("--quick", action="store_true",
                        help="MiniLM, fewer sequences and batch sizes, about five minutes")
    parser.add_argument("--add", action="store_true",
                        help="to what an earlier run left in --output: a long comparison in pieces")
    parser.add_argument("--export_only", action="store_true", help="make the peers' models and print their folder")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="build/peers")
    parser.add_argument("--engine_bench", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--command", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--revision", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--minilm", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.models = options.models or (["minilm"] if options.quick else list(DEFAULT_MODELS))
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (0.2 if options.quick else 1)
    return options


class Log:
    """What the libraries and engines print goes to a file; progress goes to standard error as well."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def note(self, text):
        print(f"[peers] {text}", file=sys.stderr)
        print(f"[peers] {text}", file=self.file)


def lens_of(options):
    lens = workloads.mixed_lens()
    if options.lengths:
        lens = tuple(int(word) for word in options.lengths.read_text().replace(",", " ").split())
    return lens[:QUICK_SEQUENCES] if options.quick else lens


def export(model, options, log):
    """Another run that exports into this cache is waited for."""
    log.note(f"{model}: exporting what is not in {options.cache} yet")
    with open(f"{options.cache}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-B", HERE / "export.py", model, options.cache / model, options.minilm,
                        GOLDEN_TEXTS], stdout=log.file, stderr=log.file, check=True)


def measure_group(group, options, lens, results, log):
    """Runs the chosen cases; those of the threads by themselves, since their engines are others."""
    tokens, budgets = (1024, workloads.BUDGETS[::2]) if options.quick else (4096, workloads.BUDGETS)
    columns = workloads.columns(lens, tokens, options.uniform, budgets)
    measurement = measure.Measurement(group, options.cache / group.model, options, log)
    names = [name for name in options.engines if name == "attendant" or group.dtype in peer.PEERS[name].DTYPES]
    chosen = [column for case in options.cases if case not in ("threads",) for column in columns.get(case, [])]
    texts = [kind for kind in ("texts", "odd_texts")
             if "accuracy" in options.cases and (options.cache / group.model / kind).exists()]
    if chosen or texts:
        scouted = results.scouted.setdefault(f"{group.model} {group.dtype} {len(lens)}", {})
        measurement.run(names, chosen, texts, scouted)
    if "threads" in options.cases:
        measurement.run(["attendant", "attendant-threads=1"], columns["threads"], [], {})
    if "long" in options.cases:
        measure.long_sequences(group, options, log)


class Results:
    """What peers.json holds: of this run, and of those before it that this one adds to."""

    def __init__(self, options):
        self.folder = options.output
        self.groups, self.runs, self.scouted = [], [], {}
        if options.add:
            stored = json.loads((self.folder / "peers.json").read_text())
            self.groups = [Group.from_json(group) for group in stored["groups"]]
            self.runs, self.scouted = stored["runs"], stored["scouted"]

    def add(self, group):
        for known in self.groups:
            if (known.model, known.dtype) == (group.model, group.dtype):
                return known.add(group)
        self.groups.append(group)

    def write(self):
        outcomes = marks.all_of(self.groups, "amx_tile" in self.runs[-1]["machine"]["flags"])
        names = sorted({series.column for group in self.groups for series in group.series}, key=report.column_order)
        stored = {"runs": self.runs, "marks": outcomes, "groups": [group.as_json() for group in self.groups],
                  "scouted": self.scouted}
        (self.folder / "peers.md").write_text(report.markdown(self.runs, self.groups, outcomes, names))
        (self.folder / "peers.json").write_text(json.dumps(stored, indent=1) + "\n")
        return outcomes


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    log = Log(options.output / "engines.log")
    if options.export_only:
        for model in options.models:
            export(model, options, log)
        return print(options.cache)
    results = Results(options)
    lens = lens_of(options)
    run = {"command": options.command, "revision": options.revision, "begin": now(),
           "load_average": machine.load_average(), "machine": machine.describe(), "cpus": machine.pin(options.threads),
           "settings": {name: getattr(options, name) for name in SETTINGS},
           "lens": lens, "sequences": len(lens), "tokens": sum(lens)}
    results.runs.append(run)
    outcomes = []
    for model in options.models:
        export(model, options, log)
        for dtype in options.dtypes:
            group = Group(model, dtype)
            measure_group(group, options, lens, results, log)
            results.add(group)
            run["end"] = now()
            outcomes = results.write()  # an interrupted run keeps what it has
    print(report.ratio_tables(results.groups, outcomes))
    for line in report.failures(results.groups):
        print(line)
    print(f"\n{options.output}/peers.md and peers.json hold the whole run.")


main()
