# SPDX-License-Identifier: Apache-2.0
"""Measures Attendant's engine and its peers side by side; compare.sh makes what it needs."""

import argparse
import datetime
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

HERE = pathlib.Path(__file__).parent
TEXTS = HERE.parent.parent / "golden" / "encoder" / "all-MiniLM-L6-v2" / "texts.json"
MODELS = ("bert-base", "minilm")
DTYPES = ("f32", "bf16", "int8")
QUICK_SEQUENCES = 48
SETTINGS = ("models", "dtypes", "engines", "rounds", "seconds", "threads", "max_batch_tokens", "quick")


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
    names = ("attendant", *peer.PEERS)
    parser.add_argument("--engines", type=words(names), default=list(names), help=",".join(names))
    parser.add_argument("--rounds", type=int, help="5; with --quick 2")
    parser.add_argument("--seconds", type=float, help="of each measurement: 1; with --quick 0.2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max_batch_tokens", type=int, default=4096, help="Attendant's token budget")
    parser.add_argument("--lengths", type=pathlib.Path,
                        help="a file of your own traffic's lengths, instead of the mixed ones")
    parser.add_argument("--quick", action="store_true",
                        help="MiniLM, fewer sequences and batch sizes, about five minutes")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="build/peers")
    parser.add_argument("--engine_bench", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--command", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--revision", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--minilm", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.models = options.models or (["minilm"] if options.quick else list(MODELS))
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (0.2 if options.quick else 1)
    return options


class Log:
    """What the libraries and engines print goes to a file; progress goes to standard error as well."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1)

    def note(self, text):
        print(f"[peers] {text}", file=sys.stderr)
        print(f"[peers] {text}", file=self.file)


def columns_of(options):
    lens = workloads.mixed_lens()
    if options.lengths:
        lens = tuple(int(word) for word in options.lengths.read_text().replace(",", " ").split())
    if options.quick:
        return workloads.columns(lens[:QUICK_SEQUENCES], 1024, workloads.BUDGETS[:2])
    return workloads.columns(lens, 4096)


def export(model, options, log):
    log.note(f"{model}: exporting what is not in {options.cache} yet")
    subprocess.run([sys.executable, "-B", HERE / "export.py", model, options.cache / model, options.minilm, TEXTS],
                   stdout=log.file, stderr=log.file, check=True)


def measure_all(options, columns, log):
    for model in options.models:
        export(model, options, log)
        for dtype in options.dtypes:
            names = [name for name in options.engines if name == "attendant" or dtype in peer.PEERS[name].DTYPES]
            group = measure.Group(model, dtype)
            group.run(names, options.cache / model, columns, options, log)
            yield group


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")


def main():
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    log = Log(options.output / "engines.log")
    columns = columns_of(options)
    mixed = next(column for column in columns if column.name == marks.ARRIVAL)
    run = {"command": options.command, "revision": options.revision,
           "begin": now(), "load_average": machine.load_average(), "machine": machine.describe(),
           "cpus": machine.pin(options.threads),
           "settings": {name: getattr(options, name) for name in SETTINGS},
           "lens": mixed.lens, "sequences": len(mixed.lens), "tokens": sum(mixed.lens)}
    groups = []
    for group in measure_all(options, columns, log):
        groups.append(group)
        write(run, groups, columns, options.output)
    print(report.ratio_tables(groups, run["marks"]))
    for line in report.failures(groups):
        print(line)
    print(f"\n{options.output}/peers.md and peers.json hold the whole run.")


def write(run, groups, columns, output):
    """After every group, so that an interrupted run keeps what it has."""
    about = [fields for group in groups for fields in group.versions.values()]
    run["end"] = now()
    run["versions"] = sorted({fields["ready"] for fields in about})
    run["isa"] = sorted({fields["isa"] for fields in about if "isa" in fields})
    run["marks"] = marks.all_of(groups)
    names = [column.name for column in columns]
    (output / "peers.md").write_text(report.markdown(run, groups, names))
    (output / "peers.json").write_text(json.dumps(run | {"groups": report.as_json(groups)}, indent=1) + "\n")


main()
