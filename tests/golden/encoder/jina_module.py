# SPDX-License-Identifier: Apache-2.0
"""Jina v2, of which transformers has no class: its formulas, put into transformers' BERT. Names, shapes and fields of
the config are those of the code that comes with the checkpoints: jinaai/jina-bert-implementation, and for source code
jinaai/jina-bert-v2-qk-post-norm."""

import functools
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


class UpGatedOutput(torch.nn.Module):
    """The same of the other code, where the gate comes behind."""

    def __init__(self, spec):
        super().__init__()
        self.up_gated_layer = torch.nn.Linear(spec["hidden"], 2 * spec["ffn"], bias=False)
        self.down_layer = torch.nn.Linear(spec["ffn"], spec["hidden"])
        self.layer_norm_2 = torch.nn.LayerNorm(spec["hidden"], eps=1e-12)

    def forward(self, _, states):
        other, gate = self.up_gated_layer(states).chunk(2, dim=-1)
        return self.layer_norm_2(states + self.down_layer(other * torch.nn.functional.gelu(gate)))


class TwiceAdded(torch.nn.Module):
    """BERT's end of attention, and its input added to that once more."""

    def __init__(self, spec, output):
        super().__init__()
        self.output = output
        self.layer_norm_1 = torch.nn.LayerNorm(spec["hidden"], eps=1e-12)

    def forward(self, context, states):
        return self.layer_norm_1(states + self.output(context, states))


class Normed(torch.nn.Module):
    """A linear map whose whole output is normalized."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        self.norm = torch.nn.LayerNorm(linear.out_features, eps=1e-12)

    def forward(self, states):
        return self.norm(self.linear(states))


def with_alibi(model, spec, stored):
    """BERT without positions, with ALiBi as its mask, whose tensors are saved under the names that `stored` gives."""
    model.embeddings.position_embeddings.register_parameter("weight", None)
    model.embeddings.position_embeddings.forward = lambda ids: 0.0

    def save(folder):
        state = model.state_dict().items()
        safetensors.torch.save_file({stored(name): value for name, value in state},
                                    pathlib.Path(folder) / "model.safetensors")

    model.save_pretrained = save
    model.scores_bias = lambda mask: alibi(mask, spec["heads"])
    return model


def replaced(names, name):
    for ours, theirs in names.items():
        name = name.replace(ours, theirs)
    return name


def jina_bert(model, spec):
    """With a gated network."""
    for layer in model.encoder.layer:
        layer.intermediate, layer.output = torch.nn.Identity(), GatedOutput(spec)
    return with_alibi(model, spec, functools.partial(replaced, {
        ".output.gated": ".mlp.gated", ".output.wo": ".mlp.wo", ".output.layernorm": ".mlp.layernorm"}))


def jina_qk(model, spec):
    """With the other code's gated network, norms of queries and keys, and two norms behind attention."""
    for layer in model.encoder.layer:
        attention = layer.attention
        attention.self.query, attention.self.key = Normed(attention.self.query), Normed(attention.self.key)
        attention.output = TwiceAdded(spec, attention.output)
        layer.intermediate, layer.output = torch.nn.Identity(), UpGatedOutput(spec)
    return with_alibi(model, spec, functools.partial(replaced, {
        ".linear.": ".", ".query.norm": ".layer_norm_q", ".key.norm": ".layer_norm_k",
        ".attention.output.layer_norm_1": ".layer_norm_1", ".output.output.": ".output.",
        ".output.layer_norm_2": ".layer_norm_2", ".output.up_gated": ".mlp.up_gated",
        ".output.down_layer": ".mlp.down_layer"}))
