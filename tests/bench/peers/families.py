# SPDX-License-Identifier: Apache-2.0
"""Whether every family of encoders is computed as fast as BERT: FLOP/s at mixed lengths beside BERT-base's, in turns.

    python families.py --engine_bench build/release/bin/engine_bench

One shape a family, from tests/bench/shapes, with random weights. Prints the median of the rounds' ratios, with the
smallest and largest. Needs no peer.
"""

import argparse
import pathlib
import statistics
import sys

import engine
import machine
import workloads

SHAPES = pathlib.Path(__file__).parent.parent / "shapes"
BASE = "bert-base"
MARK = 0.85


def families():
    """MiniLM is a BERT too."""
    return sorted(path.name for path in SHAPES.iterdir() if path.name not in (BASE, "minilm"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine_bench", required=True)
    parser.add_argument("--shapes", default=",".join(families()), help="folders of tests/bench/shapes")
    parser.add_argument("--dtypes", default="f32,bf16,int8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement, and at least one pass")
    parser.add_argument("--max_batch_tokens", type=int, default=4096)
    parser.add_argument("--uniform", type=int, default=0, help="sequences of this length instead of the mixed ones")
    return parser.parse_args()


def start(shape, dtype, options):
    command = engine.shape_command(shape, dtype, options, max_batch_tokens=options.max_batch_tokens)
    return engine.Engine(command, options.threads, sys.stderr)


def lens_of(options):
    if options.uniform:
        return workloads.uniform(options.uniform, options.max_batch_tokens, ()).lens
    return workloads.mixed_lens()


def main():
    options = arguments()
    machine.pin(options.threads)
    question = "rate " + " ".join(map(str, lens_of(options)))
    print(f"{machine.describe()['cpu']}, {options.threads} threads, "
          f"{f'uniform {options.uniform}' if options.uniform else 'mixed lengths'}\n")
    print(f"| shape | dtype | tokens/s | GFLOP/s | of {BASE}'s (smallest, largest; mark {MARK}) |\n|---|---|---|---|---|")
    for dtype in options.dtypes.split(","):
        base = start(BASE, dtype, options)
        base.ask(question)
        for shape in options.shapes.split(","):
            other = start(shape, dtype, options)
            other.ask(question)
            rounds = [(other.ask(question), base.ask(question)) for _ in range(options.rounds)]
            other.close()
            ratios = sorted(mine["flops"] / bert["flops"] for mine, bert in rounds)
            tokens, flops = (statistics.median(mine[field] for mine, _ in rounds)
                             for field in ("tokens_per_second", "flops"))
            ratio = statistics.median(ratios)
            missed = "" if ratio >= MARK else " **missed**"
            print(f"| {shape} | {dtype} | {tokens:,.0f} | {flops / 1e9:,.0f} | "
                  f"{ratio:.2f} ({ratios[0]:.2f}, {ratios[-1]:.2f}){missed} |", flush=True)
        base.close()


main()
