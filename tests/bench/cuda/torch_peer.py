#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside cuda_bench, on this machine's first GPU.

    torch_peer.py [--cuda_bench FILE] [--seconds N]

transformers' BertModel with scaled_dot_product_attention and mean pooling, the shapes and lengths of cuda_bench, ids
from the host and embeddings back to it in each run. Mixed lengths are padded: in the order they come, and sorted, cut
into every batch of --batches; the fastest counts. --cuda_bench runs that program too and prints the ratios.

Needs torch and transformers. Each line is JSON; tokens are those of sequences, without padding.
"""
import argparse
import json
import pathlib
import re
import subprocess
import time

import torch
import transformers

BATCHES = (16, 32, 64, 96, 192)
MODELS = {
    "bert-base": dict(num_hidden_layers=12, hidden_size=768, intermediate_size=3072),
    "minilm-l6": dict(num_hidden_layers=6, hidden_size=384, intermediate_size=1536),
}


def mixed_lengths():
    text = (pathlib.Path(__file__).resolve().parent.parent / "mixed_lengths.inc").read_text()
    text = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    return [int(number) for number in re.findall(r"\d+", text)]


class Encoder:
    def __init__(self, name, dtype):
        config = transformers.BertConfig(vocab_size=1000, num_attention_heads=12, **MODELS[name])
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config, attn_implementation="sdpa", add_pooling_layer=False)
        self.model = model.to("cuda", dtype).eval()

    @torch.inference_mode()
    def embed(self, ids, mask):
        """ids, mask: [batch, len] int64 in pinned memory; gives [batch, hidden] f32 on the device."""
        ids = ids.to("cuda", non_blocking=True)
        if mask is None:
            return torch.nn.functional.normalize(self.model(input_ids=ids)[0].mean(1).float())
        mask = mask.to("cuda", non_blocking=True)
        states = self.model(input_ids=ids, attention_mask=mask)[0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        return torch.nn.functional.normalize(((states * weights).sum(1) / weights.sum(1)).float())


def padded(lengths):
    longest = max(lengths)
    ids = torch.randint(0, 1000, (len(lengths), longest)).pin_memory()
    if min(lengths) == longest:
        return ids, None
    return ids, (torch.arange(longest) < torch.tensor(lengths)[:, None]).long().pin_memory()


def tokens_per_s(encoder, batches, tokens, seconds):
    def once():
        # All batches are launched before the first answer is waited for: the device is never idle.
        results = [encoder.embed(*batch) for batch in batches]
        return [result.cpu() for result in results]

    for _ in range(3):
        once()
    torch.cuda.synchronize()
    begin, runs = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        once()
        runs += 1
    return runs * tokens / (time.perf_counter() - begin)


def best_mixed(encoder, lengths, order, seconds):
    lengths = sorted(lengths) if order == "sorted" else lengths
    best = (0, 0)
    for size in BATCHES:
        batches = [padded(lengths[i:i + size]) for i in range(0, len(lengths), size)]
        best = max(best, (tokens_per_s(encoder, batches, sum(lengths), seconds), size))
    return best


def latency_ms(encoder, length, runs=200):
    batch = padded([length])
    times = []
    for _ in range(runs + 20):
        begin = time.perf_counter()
        encoder.embed(*batch).cpu()
        times.append(1e3 * (time.perf_counter() - begin))
    return sorted(times[20:])[runs // 2]


LENGTHS = (48, 128, 512, 2048)


def attention_tflops(dtype, length):
    batch = 16384 // length
    q, k, v = (torch.randn(batch, 12, length, 64, device="cuda", dtype=dtype) for _ in range(3))
    best = float("inf")
    for _ in range(50):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.nn.functional.scaled_dot_product_attention(q, k, v)
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end))
    return 4 * batch * 12 * length * length * 64 / best / 1e9


def ours(program):
    """What cuda_bench prints, as {(what, model, dtype): figure}."""
    figures = {}
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        print(json.dumps(row), flush=True)
        if row["bench"] == "encoder":
            figures[row["lengths"], row["model"], row["dtype"]] = row["tokens_per_s"]
        elif row["bench"] == "latency":
            figures["latency", row["model"], row["dtype"]] = row["p50_ms"]
        elif row["bench"] == "attention":
            figures[f"attention, {row['len']}", "", row["dtype"]] = row["tflops"]
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cuda_bench", help="the program to compare with")
    parser.add_argument("--seconds", type=float, default=1, help="time of each figure")
    flags = parser.parse_args()
    mine = ours(flags.cuda_bench) if flags.cuda_bench else {}

    def report(what, model, dtype, figure, **more):
        key = ("mixed" if what.startswith("mixed") else what, model, dtype)
        if key in mine:
            ratio = figure / mine[key] if what == "latency" else mine[key] / figure
            more["attendant_is_times_as_fast"] = round(ratio, 2)
        print(json.dumps({"peer": f"torch {torch.__version__}", "what": what, "model": model, "dtype": dtype,
                          "figure": round(figure, 3), **more}), flush=True)

    for dtype_name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
        for model in MODELS:
            encoder = Encoder(model, dtype)
            uniform = [padded([128] * 128)]
            report("uniform", model, dtype_name, tokens_per_s(encoder, uniform, 128 * 128, flags.seconds))
            for order in ("arrival", "sorted"):
                figure, batch = best_mixed(encoder, mixed_lengths(), order, flags.seconds)
                report(f"mixed, {order}", model, dtype_name, figure, batch=batch)
            report("latency", model, dtype_name, latency_ms(encoder, 16), unit="ms")
    for length in LENGTHS:
        report(f"attention, {length}", "", "bf16", attention_tflops(torch.bfloat16, length), unit="TFLOP/s")


if __name__ == "__main__":
    main()
