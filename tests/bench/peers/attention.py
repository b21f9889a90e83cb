# SPDX-License-Identifier: Apache-2.0
"""Attendant's attention beside PyTorch's scaled_dot_product_attention, or its multi-head attention beside
nn.MultiheadAttention: the same shapes, number format and threads, in turns within one run.

    python attention.py --attention_bench build/release/bin/attention_bench

Needs PyTorch alone. Prints milliseconds of a call (medians of the rounds' medians) and the median of the rounds'
ratios, PyTorch's time in ours, with the smallest and largest.
"""

import argparse
import dataclasses
import json
import os
import random
import statistics
import subprocess
import time

import machine

# PyTorch's idle threads spin for a while.
SPIN_SECONDS = 0.3


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    heads: int
    head_dim: int
    lens: tuple
    mask: str = "none"  # what attention_bench is told; PyTorch gets a boolean mask for padding and lengths

    @property
    def seq(self):
        return max(self.lens)


def mixed_lens():
    """16 lengths from 16 to 512, both included, in no order."""
    lens = [16, 512] + [random.Random(3 + i).randint(16, 512) for i in range(14)]
    random.Random(1).shuffle(lens)
    return tuple(lens)


SHAPES = (
    Shape("16 mixed lengths 16...512, lengths known", 12, 64, mixed_lens(), "lengths"),
    Shape("the same, a mask of the keys given", 12, 64, mixed_lens(), "padding"),
    Shape("8 x 128", 12, 64, (128,) * 8),
    Shape("4 x 512", 12, 64, (512,) * 4),
    Shape("1 x 2,048", 12, 64, (2048,)),
    Shape("1 x 2,048, causal", 12, 64, (2048,), "causal"),
    Shape("1 x 8,192", 2, 64, (8192,)),
    Shape("4 x 512, head_dim 32", 12, 32, (512,) * 4),
    Shape("4 x 512, head_dim 128", 6, 128, (512,) * 4),
)

MULTI_HEAD_SHAPES = (
    Shape("1 x 32", 8, 64, (32,)),
    Shape("64 x 10", 8, 64, (10,) * 64),
    Shape("32 x 100", 8, 64, (100,) * 32),
    Shape("4 x 512", 8, 64, (512,) * 4),
    Shape("8 x 128, 12 heads of 64", 12, 64, (128,) * 8),
)


class Attendant:
    def __init__(self, path, level):
        self.level = level
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, shape, dtype, threads, seconds):
        words = [self.level, dtype, threads, shape.heads, shape.head_dim, shape.seq, shape.mask, seconds, *shape.lens]
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["seconds"]


class PyTorch:
    def __init__(self, threads):
        import torch
        self.torch = torch
        self.version = torch.__version__
        torch.set_num_threads(threads)
        self.calls = {}

    def multi_head(self, shape, dtype):
        torch = self.torch
        hidden = shape.heads * shape.head_dim
        module = torch.nn.MultiheadAttention(hidden, shape.heads, batch_first=True).eval()
        states = torch.randn(len(shape.lens), shape.seq, hidden)
        if dtype == "bf16":
            module, states = module.to(torch.bfloat16), states.to(torch.bfloat16)
        return lambda: module(states, states, states, need_weights=False)

    def call(self, shape, dtype):
        torch = self.torch
        torch.manual_seed(7)
        if shape in MULTI_HEAD_SHAPES:
            return self.multi_head(shape, dtype)
        size = (len(shape.lens), shape.heads, shape.seq, shape.head_dim)
        q, k, v = (torch.randn(size).to(torch.bfloat16 if dtype == "bf16" else torch.float32) for _ in range(3))
        mask = None
        if shape.mask in ("lengths", "padding"):
            mask = (torch.arange(shape.seq) < torch.tensor(shape.lens)[:, None])[:, None, None, :]
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: attend(q, k, v, attn_mask=mask, is_causal=shape.mask == "causal")

    def seconds(self, shape, dtype, _, seconds):
        with self.torch.inference_mode():
            if (shape, dtype) not in self.calls:
                self.calls[shape, dtype] = self.call(shape, dtype)
                self.calls[shape, dtype]()
            times, end = [], time.perf_counter() + seconds
            while not times or time.perf_counter() < end:
                begin = time.perf_counter()
                self.calls[shape, dtype]()
                times.append(time.perf_counter() - begin)
        time.sleep(SPIN_SECONDS)
        return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attention_bench", required=True)
    parser.add_argument("--level", choices=("kernel", "flash", "scaled_dot_product", "multi_head"), default="flash",
                        help="kernels/cpu alone, or an operator as it is served")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--shapes", default="", help="only those whose name contains this")
    options = parser.parse_args()
    machine.pin(options.threads)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    ours, theirs = Attendant(options.attention_bench, options.level), PyTorch(options.threads)
    shapes = MULTI_HEAD_SHAPES if options.level == "multi_head" else SHAPES
    cells = [(shape, dtype) for dtype in options.dtypes.split(",") for shape in shapes if options.shapes in shape.name]
    times = {cell: [] for cell in cells}
    for _ in range(options.rounds):
        for shape, dtype in cells:
            times[shape, dtype].append([engine.seconds(shape, dtype, options.threads, options.seconds)
                                        for engine in (ours, theirs)])
    print(f"{machine.describe()['cpu']}, {options.threads} threads, PyTorch {theirs.version}\n")
    print("| dtype | shape | Attendant, ms | PyTorch, ms | ratio (smallest, largest) |\n|---|---|---|---|---|")
    for (shape, dtype), rounds in times.items():
        ratios = sorted(peer / mine for mine, peer in rounds)
        mine, peer = (1e3 * statistics.median(column) for column in zip(*rounds))
        print(f"| {dtype} | {shape.name} | {mine:.2f} | {peer:.2f} | "
              f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}, {ratios[-1]:.2f}) |")


main()
