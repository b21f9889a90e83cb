# SPDX-License-Identifier: Apache-2.0
"""Writes what the attention operators' C++ tests compare with, as ../README.md describes.

Needs torch, numpy and safetensors. Run it from anywhere:

    python tests/golden/attention/make_golden.py

Inputs and large weights are not stored: both sides make them with the counter-based generator `values`,
whose numbers are exact in f32 (tests/support/counter_values.h is its twin).
"""

import json
import pathlib

import numpy
import safetensors.torch
import torch

HERE = pathlib.Path(__file__).parent
F = torch.nn.functional
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def values(seed, shape, amplitude=1.0):
    """Uniform in [-amplitude, amplitude): value i is 24 bits of splitmix64's mix of (seed, i)."""
    count = int(numpy.prod(shape))
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) * numpy.uint64(0x9E3779B97F4A7C15) + numpy.arange(count, dtype=numpy.uint64)
        z = z * numpy.uint64(0x9E3779B97F4A7C15) + numpy.uint64(0x632BE59BD9B4E019)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    unit = (z >> numpy.uint64(40)).astype(numpy.float32) * numpy.float32(2.0 ** -23) - numpy.float32(1)
    return torch.from_numpy(unit * numpy.float32(amplitude)).reshape(shape)


def chosen_rows(out, step):
    """Every step-th row of the last dimension."""
    return out.reshape(-1, out.shape[-1])[::step].contiguous()


# ---- scaled_dot_product_attention ----

# seeds: query, key, value, mask = seed, seed + 1, seed + 2, seed + 3
SDPA_CASES = [
    dict(name="plain"),
    dict(name="unequal_lengths", queries=5, keys=33),
    dict(name="more_queries_than_keys", queries=40, keys=3),
    dict(name="length_one", queries=1, keys=1),
    dict(name="value_dim", value_dim=24),
    dict(name="scale", scale=0.73),
    dict(name="causal", causal=True),
    dict(name="causal_unequal", causal=True, queries=29, keys=17),
    dict(name="bool_full", mask="bool", mask_dims=[2, 3, 19, 27]),
    dict(name="bool_shared", mask="bool", mask_dims=[1, 1, 19, 27]),
    dict(name="bool_by_head", mask="bool", mask_dims=[1, 3, 19, 1]),
    dict(name="additive_full", mask="additive", mask_dims=[2, 3, 19, 27]),
    dict(name="additive_by_key", mask="additive", mask_dims=[2, 1, 1, 27]),
    dict(name="additive_minus_inf", mask="minus_inf", mask_dims=[2, 1, 19, 27]),
    dict(name="additive_minus_1e9", mask="minus_1e9", mask_dims=[2, 1, 19, 27]),
    dict(name="all_minus_1e9", mask="all_minus_1e9", mask_dims=[1, 1, 19, 27]),
    dict(name="key_padding", mask="key_padding", mask_dims=[2, 1, 1, 27]),
    dict(name="huge_logits", amplitude=70.0),
    dict(name="long", batch=1, heads=2, queries=700, keys=1100, head_dim=64, value_dim=64, step=97),
    dict(name="long_causal", batch=1, heads=2, queries=900, keys=900, head_dim=64, value_dim=64, causal=True,
         step=97),
]
SDPA_DEFAULTS = dict(batch=2, heads=3, queries=19, keys=27, head_dim=16, value_dim=16, amplitude=1.0, mask="none",
                     mask_dims=[], causal=False, step=3)


def sdpa_mask(case):
    kind, dims, seed = case["mask"], case["mask_dims"], case["seed"] + 3
    if kind == "none":
        return None
    noise = values(seed, dims, 2.0)
    if kind == "additive":
        return noise
    if kind == "key_padding":
        kept = torch.tensor([dims[3], dims[3] // 2])
        return torch.arange(dims[3])[None, :].lt(kept[:, None])[:, None, None, :]
    if kind == "all_minus_1e9":
        return torch.full(dims, -1e9)
    keep = noise > -0.5
    keep[..., 0] = True  # a fully masked row is NaN in PyTorch, zeros here
    if kind == "bool":
        return keep
    return torch.where(keep, 0.0, {"minus_inf": float("-inf"), "minus_1e9": -1e9}[kind])


def sdpa_tensors(case):
    b, h, n, m = case["batch"], case["heads"], case["queries"], case["keys"]
    query = values(case["seed"], (b, h, n, case["head_dim"]), case["amplitude"])
    key = values(case["seed"] + 1, (b, h, m, case["head_dim"]), case["amplitude"])
    value = values(case["seed"] + 2, (b, h, m, case["value_dim"]))
    mask = sdpa_mask(case)
    found = {}
    for name, dtype in DTYPES.items():
        m16 = mask.to(dtype) if mask is not None and mask.dtype == torch.float32 else mask
        out = F.scaled_dot_product_attention(query.to(dtype), key.to(dtype), value.to(dtype), attn_mask=m16,
                                             is_causal=case["causal"], scale=case.get("scale"))
        assert out.isfinite().all(), case["name"]
        found[f"{case['name']}/{name}"] = chosen_rows(out, case["step"])
    return found


# ---- modules ----

# amplitude of a weight: such that a unit input gives outputs of about unit size
def fill(module, seed):
    """Fills a module's parameters, in the order of their names."""
    for index, (name, parameter) in enumerate(sorted(module.named_parameters())):
        if parameter.dim() > 1:
            parameter.data = values(seed + index, parameter.shape, (3.0 / parameter.shape[1]) ** 0.5)
        elif "norm" in name and name.endswith("weight"):
            parameter.data = 1.0 + values(seed + index, parameter.shape, 0.25)
        else:
            parameter.data = values(seed + index, parameter.shape, 0.25)


def padding(batch, seq):
    """Kept keys of each sequence, [batch]: from seq down to 1 or so."""
    return torch.tensor([max(1, seq - (i * seq) // batch) for i in range(batch)])


def padding_mask(batch, seq):
    return torch.arange(seq)[None, :] >= padding(batch, seq)[:, None]


MHA_CASES = [
    dict(name="mha_64x10", batch=64, seq=10, hidden=512, heads=8, step=41),
    dict(name="mha_32x100", batch=32, seq=100, hidden=512, heads=8, step=197),
    dict(name="mha_32x100_padded", batch=32, seq=100, hidden=512, heads=8, step=197, padded=True),
    dict(name="mha_causal_768", batch=2, seq=33, hidden=768, heads=12, step=11, causal=True),
    dict(name="mha_1024", batch=1, seq=20, hidden=1024, heads=16, step=5),
]


@torch.no_grad()
def mha_tensors(case):
    b, n, hidden = case["batch"], case["seq"], case["hidden"]
    found = {}
    for name, dtype in DTYPES.items():
        module = torch.nn.MultiheadAttention(hidden, case["heads"], batch_first=True).eval()
        fill(module, case["seed"] + 1)
        x = values(case["seed"], (b, n, hidden)).to(dtype)
        mask = padding_mask(b, n) if case.get("padded") else None
        causal = torch.ones(n, n).triu(1).bool() if case.get("causal") else None
        out, weights = module.to(dtype)(x, x, x, key_padding_mask=mask, attn_mask=causal)
        found[f"{case['name']}/{name}"] = chosen_rows(out, case["step"])
        if name == "f32":
            found[f"{case['name']}/averaged"] = chosen_rows(weights, case["step"])
            weights = module(x, x, x, key_padding_mask=mask, attn_mask=causal, average_attn_weights=False)[1]
            found[f"{case['name']}/per_head"] = chosen_rows(weights, case["step"] * 7)
    return found


# Stored whole, as a user saves them: state_dict and a config.json.
CHECKPOINTS = {
    "mha": dict(type="MultiheadAttention", embed_dim=24, num_heads=3),
    "mha_cross": dict(type="MultiheadAttention", embed_dim=24, num_heads=4, kdim=10, vdim=14),
    "mha_no_bias": dict(type="MultiheadAttention", embed_dim=32, num_heads=2, bias=False),
    "layer_post_relu": dict(type="TransformerEncoderLayer", d_model=24, nhead=3, dim_feedforward=40,
                            activation="relu", norm_first=False, layer_norm_eps=1e-5),
    "layer_pre_gelu": dict(type="TransformerEncoderLayer", d_model=32, nhead=4, dim_feedforward=48,
                           activation="gelu", norm_first=True, layer_norm_eps=1e-6),
    "layer_no_bias": dict(type="TransformerEncoderLayer", d_model=16, nhead=2, dim_feedforward=24,
                          activation="gelu", norm_first=False, layer_norm_eps=1e-5, bias=False),
    "encoder_post": dict(type="TransformerEncoder", num_layers=6, d_model=16, nhead=2, dim_feedforward=32,
                         activation="relu", norm_first=False, layer_norm_eps=1e-5),
    "encoder_pre_norm": dict(type="TransformerEncoder", num_layers=6, d_model=16, nhead=4, dim_feedforward=32,
                             activation="gelu", norm_first=True, layer_norm_eps=1e-5, final_norm=True),
}


def build(config):
    fields = dict(config)
    kind, layers, final = fields.pop("type"), fields.pop("num_layers", 0), fields.pop("final_norm", False)
    if kind == "MultiheadAttention":
        return torch.nn.MultiheadAttention(**fields, batch_first=True).eval()
    layer = torch.nn.TransformerEncoderLayer(**fields, dropout=0.0, batch_first=True)
    if kind == "TransformerEncoderLayer":
        return layer.eval()
    norm = torch.nn.LayerNorm(fields["d_model"], fields["layer_norm_eps"]) if final else None
    # Nested tensors would zero the padded rows, where each module alone computes them.
    return torch.nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False).eval()


@torch.no_grad()
def checkpoint(name, config, seed):
    """Queries [3, 9, hidden]; of MultiheadAttention also keys and values, [3, 13, ...]; all padded."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    module = build(config)
    fill(module, seed + 8)
    safetensors.torch.save_file({k: v.contiguous() for k, v in module.state_dict().items()},
                                folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if config["type"] == "MultiheadAttention":
        hidden = config["embed_dim"]
        query = values(seed, (3, 9, hidden))
        key = values(seed + 1, (3, 13, config.get("kdim", hidden)))
        value = values(seed + 2, (3, 13, config.get("vdim", hidden)))
        out, weights = module(query, key, value, key_padding_mask=padding_mask(3, 13), average_attn_weights=False)
        return {f"{name}/out": out, f"{name}/weights": weights}
    x = values(seed, (3, 9, config["d_model"]))
    return {f"{name}/out": module(x, src_key_padding_mask=padding_mask(3, 9)),
            f"{name}/causal": module(x, torch.nn.Transformer.generate_square_subsequent_mask(9))}


# One of the usual size, with generated weights.
LARGE_ENCODER = dict(name="encoder_512", type="TransformerEncoder", num_layers=6, d_model=512, nhead=8,
                     dim_feedforward=2048, activation="relu", norm_first=False, layer_norm_eps=1e-5)


@torch.no_grad()
def large_encoder_tensors(case):
    module = build({k: v for k, v in case.items() if k not in ("name", "seed", "batch", "seq", "step")})
    fill(module, case["seed"] + 1)
    b, n = case["batch"], case["seq"]
    x, mask = values(case["seed"], (b, n, 512)), padding_mask(b, n)
    f32 = module(x, src_key_padding_mask=mask)
    bf16 = module.to(torch.bfloat16)(x.to(torch.bfloat16), src_key_padding_mask=mask)
    return {f"{case['name']}/f32": chosen_rows(f32, case["step"]),
            f"{case['name']}/bf16": chosen_rows(bf16, case["step"])}


def main():
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    cases = {"sdpa": [], "mha": [], "encoder": [], "checkpoints": []}
    tensors = {}
    for index, case in enumerate(SDPA_CASES):
        case = SDPA_DEFAULTS | case | {"seed": 1000 + 16 * index}
        cases["sdpa"].append(case)
        tensors |= sdpa_tensors(case)
    for index, case in enumerate(MHA_CASES):
        case = {"padded": False, "causal": False} | case | {"seed": 5000 + 64 * index}
        cases["mha"].append(case)
        tensors |= mha_tensors(case)
    case = LARGE_ENCODER | dict(seed=9000, batch=4, seq=24, step=13)
    cases["encoder"].append(case)
    tensors |= large_encoder_tensors(case)
    for index, (name, config) in enumerate(CHECKPOINTS.items()):
        seed = 20000 + 256 * index
        cases["checkpoints"].append({"name": name, "seed": seed})
        tensors |= checkpoint(name, config, seed)
    safetensors.torch.save_file({k: v.contiguous() for k, v in tensors.items()}, HERE / "golden.safetensors")
    (HERE / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
