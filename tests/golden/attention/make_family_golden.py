# SPDX-License-Identifier: Apache-2.0
"""Writes family.safetensors: what the formulas of the attention family give, computed in double by PyTorch, and the
position encodings of transformers, as ../README.md describes.

Needs torch, transformers and safetensors. Run it from anywhere; a second run gives the same bytes:

    python tests/golden/attention/make_family_golden.py
"""

import math
import pathlib

import safetensors.torch
import torch
import transformers
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama

HERE = pathlib.Path(__file__).parent
SEED = 20260411

# (name, batch, query len, key len, query dim, key dim, value dim): no width divides a vector's length but one.
SHAPES = (
    ("self", 2, 19, 19, 24, 24, 24),
    ("cross", 3, 7, 33, 12, 20, 17),
    ("one", 1, 1, 1, 8, 8, 8),
    ("wide", 1, 18, 70, 64, 64, 64),
)
UNITS = 21


class Writer:
    """Collects CASE/FIELD tensors; what was computed in double is stored in float."""

    def __init__(self, seed):
        self.tensors = {}
        self.generator = torch.Generator().manual_seed(seed)

    def random(self, *shape, scale=1.0):
        # Rounded to bf16 first: the C++ side starts from the very same numbers in both formats.
        return (torch.randn(shape, generator=self.generator) * scale).bfloat16().double()

    def keep(self, case, **fields):
        for field, value in fields.items():
            stored = value if value.dtype in (torch.uint8, torch.int32) else value.float()
            self.tensors[f"{case}/{field}"] = stored.clone(memory_format=torch.contiguous_format)


def key_padding(batch, keys):
    """True = attended. Sequence i loses its last 3 i keys, the last sequence all of them where there are several."""
    mask = torch.ones(batch, keys, dtype=torch.bool)
    for i in range(batch):
        mask[i, max(keys - 3 * i, 0):] = False
    if batch > 2:
        mask[-1] = False
    return mask


def attend(scores, values, allowed=None):
    """softmax over the allowed keys; a row that allows none gives zeros. scores [batch, queries, keys]"""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(nan=0.0)
    return weights @ values, weights


def masks_of(writer, shape):
    """(suffix, allowed [batch, queries, keys] or None, additive or None, fields to store)"""
    _, batch, queries, keys, *_ = shape
    yield "plain", None, None, {}
    padding = key_padding(batch, keys)
    yield "padding", padding[:, None, :].expand(batch, queries, keys), None, {"key_mask": padding.to(torch.uint8)}
    causal = torch.ones(queries, keys, dtype=torch.bool).tril()
    yield "causal", causal.expand(batch, queries, keys), None, {}
    bias = writer.random(queries, keys, scale=2.0)
    yield "additive", None, bias, {"added": bias}
    boolean = torch.rand(queries, keys, generator=writer.generator) < 0.6
    boolean[0] = queries == 1  # a row that sees nothing, where there are others
    yield "bool", boolean.expand(batch, queries, keys), None, {"mask": boolean.to(torch.uint8)}


def score_cases(writer, kind, shape, inputs, scores):
    """One case for each mask of one score function."""
    name = shape[0]
    for suffix, allowed, bias, fields in masks_of(writer, shape):
        total = scores if bias is None else scores + bias
        out, weights = attend(total, inputs["v"], allowed)
        writer.keep(f"{kind}_{name}_{suffix}", out=out, weights=weights, **fields)
    writer.keep(f"{kind}_{name}", **inputs)


def qkv(writer, shape, scale=1.0):
    _, batch, queries, keys, query_dim, key_dim, value_dim = shape
    return dict(q=writer.random(batch, queries, query_dim, scale=scale),
                k=writer.random(batch, keys, key_dim, scale=scale), v=writer.random(batch, keys, value_dim))


def additive(writer, shape):
    """Bahdanau, Cho, Bengio 2015: score = v . tanh(W1 q + W2 k + b)"""
    x = qkv(writer, shape)
    query_dim, key_dim = shape[4:6]
    x["query_weight"] = writer.random(UNITS, query_dim, scale=query_dim**-0.5)
    x["key_weight"] = writer.random(UNITS, key_dim, scale=key_dim**-0.5)
    x["bias"] = writer.random(UNITS, scale=0.3)
    x["score_weight"] = writer.random(UNITS)
    hidden = (x["q"] @ x["query_weight"].T)[:, :, None, :] + (x["k"] @ x["key_weight"].T)[:, None, :, :] + x["bias"]
    score_cases(writer, "additive", shape, x, torch.tanh(hidden) @ x["score_weight"])


def luong_dot(writer, shape):
    """Luong, Pham, Manning 2015: score = q . k, with no scale"""
    if shape[4] == shape[5]:
        x = qkv(writer, shape, scale=0.6)
        score_cases(writer, "luong_dot", shape, x, x["q"] @ x["k"].transpose(1, 2))


def luong_general(writer, shape):
    """score = q . W k"""
    x = qkv(writer, shape)
    x["weight"] = writer.random(shape[4], shape[5], scale=2 * (shape[4] * shape[5])**-0.5)
    score_cases(writer, "luong_general", shape, x, torch.einsum("bqi,ij,bkj->bqk", x["q"], x["weight"], x["k"]))


def luong_concat(writer, shape):
    """score = v . tanh(W [q; k])"""
    x = qkv(writer, shape)
    _, batch, queries, keys, query_dim, key_dim, _ = shape
    x["weight"] = writer.random(UNITS, query_dim + key_dim, scale=(query_dim + key_dim)**-0.5)
    x["score_weight"] = writer.random(UNITS)
    pair = torch.cat([x["q"][:, :, None, :].expand(batch, queries, keys, query_dim),
                      x["k"][:, None, :, :].expand(batch, queries, keys, key_dim)], dim=-1)
    score_cases(writer, "luong_concat", shape, x, torch.tanh(pair @ x["weight"].T) @ x["score_weight"])


FEATURES = {"elu": lambda x: torch.nn.functional.elu(x) + 1, "relu": torch.relu}


def linear(writer, shape):
    """Katharopoulos et al. 2020: phi(q) . sum(phi(k) v) / phi(q) . sum(phi(k)); here from the quadratic form."""
    name, batch, queries, keys, query_dim, key_dim, _ = shape
    if query_dim != key_dim:
        shape = (name, batch, queries, keys, key_dim, key_dim, shape[6])
    x = qkv(writer, shape)
    padding = key_padding(batch, keys)
    causal = torch.ones(queries, keys, dtype=torch.bool).tril().expand(batch, queries, keys)
    padded = padding[:, None, :].expand(batch, queries, keys)
    for feature, phi in FEATURES.items():
        similarity = phi(x["q"]) @ phi(x["k"]).transpose(1, 2)
        for suffix, allowed in (("plain", None), ("padding", padded), ("causal", causal),
                                ("causal_padding", causal & padded)):
            kept = similarity if allowed is None else similarity * allowed
            total = kept.sum(-1, keepdim=True)
            weights = torch.where(total > 0, kept / total, torch.zeros_like(kept))
            out = weights @ x["v"]
            if suffix == "plain":
                state = phi(x["k"]).transpose(1, 2) @ x["v"]
                short = phi(x["q"]) @ state / (phi(x["q"]) @ phi(x["k"]).sum(1)[:, :, None])
                assert feature == "relu" or torch.allclose(short, out, atol=1e-12)
            fields = {"key_mask": padding.to(torch.uint8)} if "padding" in suffix else {}
            writer.keep(f"linear_{name}_{feature}_{suffix}", out=out, weights=weights, **fields)
    writer.keep(f"linear_{name}", **x)


def linformer(writer, shape, projected):
    """Wang et al. 2020: softmax(q (E k)^T / sqrt(d)) (F v). Masked keys are left out of both products."""
    name, batch, queries, keys, _, dim, value_dim = shape
    x = qkv(writer, (name, batch, queries, keys, dim, dim, value_dim))
    x["key_projection"] = writer.random(projected, keys, scale=keys**-0.5)
    x["value_projection"] = writer.random(projected, keys, scale=keys**-0.5)
    padding = key_padding(batch, keys)
    for suffix, mask in (("plain", torch.ones_like(padding)), ("padding", padding)):
        keep = mask[:, :, None].double()
        scores = x["q"] @ (x["key_projection"] @ (x["k"] * keep)).transpose(1, 2) / math.sqrt(dim)
        some = mask.any(1)[:, None, None].expand(batch, queries, projected)
        out, weights = attend(scores, x["value_projection"] @ (x["v"] * keep), some)
        fields = {"key_mask": padding.to(torch.uint8)} if suffix == "padding" else {}
        writer.keep(f"linformer_{name}_{suffix}", out=out, weights=weights, **fields)
    writer.keep(f"linformer_{name}", **x)


def sinusoidal(writer):
    """Vaswani et al. 2017: sin(p / 10000^(2i/hidden)) on dimension 2i, cos of the same on 2i + 1."""
    for hidden in (1, 7, 24):
        position = torch.arange(50, dtype=torch.float64)[:, None]
        rate = 10000.0 ** (-torch.arange(0, hidden, 2, dtype=torch.float64) / hidden)
        table = torch.zeros(50, hidden, dtype=torch.float64)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)[:, :hidden // 2]
        writer.keep(f"sinusoidal_{hidden}", table=table)


def rotary(writer):
    """Su et al. 2021, by transformers' own code: halves as in Llama, neighbours as in GPT-J, there also in part.
    That computes its angles in float: far positions are compared with the formula in double."""
    positions = torch.tensor([0, 1, 2, 5, 11, 23, 40], dtype=torch.int32)
    heads, head_dim = 3, 16
    x = writer.random(len(positions), heads, head_dim)
    for base in (10000.0, 500000.0):
        config = transformers.LlamaConfig(
            hidden_size=heads * head_dim, num_attention_heads=heads, max_position_embeddings=2048,
            rope_parameters={"rope_type": "default", "rope_theta": base})
        cos, sin = modeling_llama.LlamaRotaryEmbedding(config)(x.float()[None], positions[None].long())
        turned, _ = modeling_llama.apply_rotary_pos_emb(x.transpose(0, 1)[None].float(),
                                                        x.transpose(0, 1)[None].float(), cos, sin)
        writer.keep(f"rotary_half_{int(base)}", x=x, positions=positions, out=turned[0].transpose(0, 1))
    for dims in (16, 8):
        table = modeling_gptj.create_sinusoidal_positions(2048, dims)[positions.long()]
        sin, cos = torch.split(table, dims // 2, dim=-1)
        turned = modeling_gptj.apply_rotary_pos_emb(x[None, :, :, :dims].float(), sin[None], cos[None])[0]
        writer.keep(f"rotary_interleaved_{dims}", x=x, positions=positions,
                    out=torch.cat([turned, x[:, :, dims:].float()], dim=-1))
        assert torch.allclose(turned, turn_in_double(x[:, :, :dims], positions), atol=1e-5)
    far = torch.tensor([1001, 16383, 131071], dtype=torch.int32)
    y = x[:len(far)]
    writer.keep("rotary_interleaved_far", x=y, positions=far, out=turn_in_double(y, far))


def turn_in_double(x, positions):
    """(x[2i], x[2i + 1]) turned by position * 10000^(-2i/dims)"""
    dims = x.shape[-1]
    rates = 10000.0 ** (-torch.arange(0, dims, 2, dtype=torch.float64) / dims)
    turn = torch.polar(torch.ones(1, dtype=torch.float64), positions.double()[:, None] * rates)[:, None, :]
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2).float()


def alibi(writer):
    """Press, Smith, Lewis 2022, by transformers' Bloom. Its bias is slope * j; under a causal softmax that equals
    ours, -slope * |i - j|, which is stored for queries and keys of one length."""
    for heads in (1, 2, 8, 12, 16, 20):
        bloom = build_alibi_tensor(torch.ones(1, 9), heads, torch.float64).reshape(heads, 9)
        slopes = bloom[:, 1] - bloom[:, 0]
        place = torch.arange(9, dtype=torch.float64)
        ours = -slopes[:, None, None] * (place[:, None] - place[None, :]).abs()
        causal = torch.ones(9, 9, dtype=torch.bool).tril()
        scores = writer.random(heads, 9, 9)
        theirs = (scores + bloom[:, None, :]).masked_fill(~causal, -math.inf).softmax(-1)
        assert torch.allclose(theirs, (scores + ours).masked_fill(~causal, -math.inf).softmax(-1), atol=1e-12)
        writer.keep(f"alibi_{heads}", slopes=slopes, bias=ours)


def main():
    writer = Writer(SEED)
    for shape in SHAPES:
        additive(writer, shape)
        luong_dot(writer, shape)
        luong_general(writer, shape)
        luong_concat(writer, shape)
        linear(writer, shape)
        linformer(writer, shape, projected=min(shape[3], 11))
    sinusoidal(writer)
    rotary(writer)
    alibi(writer)
    safetensors.torch.save_file(writer.tensors, HERE / "family.safetensors")
    size = (HERE / "family.safetensors").stat().st_size
    print(f"{len(writer.tensors)} tensors, {size} bytes")


if __name__ == "__main__":
    main()
