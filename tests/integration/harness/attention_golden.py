# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's attention computed (tests/golden/attention), with the inputs and weights that its script generates."""

import json

import numpy as np

from harness import golden, settings

FOLDER = settings.ROOT / "tests" / "golden" / "attention"


def values(seed, shape, amplitude=1.0):
    """As make_golden.py: uniform in [-amplitude, amplitude), exact in f32."""
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.arange(count, dtype=np.uint64)
        z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    unit = (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0 ** -23) - np.float32(1)
    return (unit * np.float32(amplitude)).reshape(shape)


def fill(shapes, seed):
    """A state_dict of these shapes, filled as make_golden.py fills a module's parameters: in the order of their names."""
    state = {}
    for index, (name, shape) in enumerate(sorted(shapes.items())):
        if len(shape) > 1:
            state[name] = values(seed + index, shape, (3.0 / shape[1]) ** 0.5)
        else:
            state[name] = values(seed + index, shape, 0.25)
            if "norm" in name and name.endswith("weight"):
                state[name] += np.float32(1)
    return state


def multi_head_shapes(hidden, prefix=""):
    return {f"{prefix}in_proj_weight": (3 * hidden, hidden), f"{prefix}in_proj_bias": (3 * hidden,),
            f"{prefix}out_proj.weight": (hidden, hidden), f"{prefix}out_proj.bias": (hidden,)}


def encoder_shapes(layers, hidden, ffn):
    shapes = {}
    for layer in range(layers):
        prefix = f"layers.{layer}."
        shapes |= multi_head_shapes(hidden, f"{prefix}self_attn.")
        shapes |= {f"{prefix}linear1.weight": (ffn, hidden), f"{prefix}linear1.bias": (ffn,),
                   f"{prefix}linear2.weight": (hidden, ffn), f"{prefix}linear2.bias": (hidden,)}
        for norm in ("norm1", "norm2"):
            shapes |= {f"{prefix}{norm}.weight": (hidden,), f"{prefix}{norm}.bias": (hidden,)}
    return shapes


def kept_keys(batch, seq):
    """Key padding mask [batch, seq], true for what is kept."""
    kept = np.array([max(1, seq - i * seq // batch) for i in range(batch)])
    return np.arange(seq) < kept[:, None]


def chosen_rows(array, step):
    return array.reshape(-1, array.shape[-1])[::step]


def sdpa_mask(case):
    """A case's mask as make_golden.py makes it, bool or f32; None without one."""
    kind, dims = case["mask"], case["mask_dims"]
    if kind == "none":
        return None
    if kind == "key_padding":
        kept = np.array([dims[3], dims[3] // 2])
        return np.arange(dims[3]) < kept[:, None, None, None]
    if kind == "all_minus_1e9":
        return np.full(dims, -1e9, np.float32)
    noise = values(case["seed"] + 3, dims, 2.0)
    if kind == "additive":
        return noise
    keep = noise > -0.5
    keep[..., 0] = True
    return keep if kind == "bool" else np.where(keep, 0, {"minus_inf": -np.inf, "minus_1e9": -1e9}[kind]).astype("f4")


def widths(name):
    """The widths of query, key and value that one of the small modules takes."""
    config = json.loads((FOLDER / name / "config.json").read_text())
    hidden = config.get("embed_dim", config.get("d_model"))
    return hidden, config.get("kdim", hidden), config.get("vdim", hidden)


CASES = json.loads((FOLDER / "cases.json").read_text())
TENSORS = golden.read_safetensors(FOLDER / "golden.safetensors")
