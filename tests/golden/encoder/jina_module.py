# SPDX-License-Identifier: Apache-2.0
"""Jina v2, of which transformers has no class: its formulas, put into transformers' BERT."""

import math
import pathlib

import safetensors.torch
import torch


class GatedOutput(torch.nn.Module):
    """Jina's feed-forward network with its residual and norm, in the place of BERT's output."""

    def __init__(self, spec):
        super().__init__()
        self.gated_layers = torch.nn.Linear(spec["hidden"], 2 * spec["ffn"], bias=False)
        self.wo = torch.nn.Linear(spec["ffn"], spec["hidden"])
        self.layernorm = torch.nn.LayerNorm(spec["hidden"], eps=1e-12)

    def forward(self, _, states):
        gate, other = self.gated_layers(states).chunk(2, dim=-1)
        return self.layernorm(states + self.wo(torch.nn.functional.gelu(gate) * other))


def alibi(mask, heads):
    """Scores' bias [1, heads, len, len] of the tokens that the mask [len] keeps."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    slopes += [2 ** (-4 * (2 * head + 1) / power) for head in range(heads - power)]
    places = torch.arange(len(mask))
    bias = -torch.tensor(slopes)[:, None, None] * (places[:, None] - places[None]).abs()
    return bias.masked_fill(mask[None, None] == 0, torch.finfo(torch.float32).min)[None]


def jina_bert(model, spec):
    """BERT without positions, with ALiBi as its mask and a gated network."""
    model.embeddings.position_embeddings.register_parameter("weight", None)
    model.embeddings.position_embeddings.forward = lambda ids: 0.0
    for layer in model.encoder.layer:
        layer.intermediate, layer.output = torch.nn.Identity(), GatedOutput(spec)
    model.save_pretrained = lambda folder: safetensors.torch.save_file(
        {name.replace(".output.gated", ".mlp.gated").replace(".output.wo", ".mlp.wo").replace(
            ".output.layernorm", ".mlp.layernorm"): value for name, value in model.state_dict().items()},
        pathlib.Path(folder) / "model.safetensors")
    model.scores_bias = lambda mask: alibi(mask, spec["heads"])
    return model
