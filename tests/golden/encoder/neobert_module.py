# SPDX-License-Identifier: Apache-2.0
"""NeoBERT, of which transformers has no class: a module with its formulas. Names, shapes and fields of the config are
those of the code that comes with chandar-lab/NeoBERT."""

import pathlib
import types

import safetensors.torch
import torch

EPSILON, BASE = 1e-5, 10000.0


def turned(x):
    """Heads [len, heads, head_dim] whose neighbouring values are complex numbers, turned by their places."""
    length, _, width = x.shape
    rates = BASE ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    numbers = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)[:, None]).flatten(-2)


class Swiglu(torch.nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.w12 = torch.nn.Linear(hidden, 2 * ffn, bias=False)
        self.w3 = torch.nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        gate, up = self.w12(x).chunk(2, dim=-1)
        return self.w3(torch.nn.functional.silu(gate) * up)


class Layer(torch.nn.Module):
    def __init__(self, spec):
        super().__init__()
        hidden = spec["hidden"]
        self.heads = spec["heads"]
        self.qkv = torch.nn.Linear(hidden, 3 * hidden, bias=False)
        self.wo = torch.nn.Linear(hidden, hidden, bias=False)
        self.ffn = Swiglu(hidden, stored_ffn(spec["ffn"]))
        self.attention_norm = torch.nn.RMSNorm(hidden, eps=EPSILON)
        self.ffn_norm = torch.nn.RMSNorm(hidden, eps=EPSILON)

    def forward(self, x, mask):
        """The states [len, hidden] behind the layer, and its weights [heads, len, len]."""
        heads = self.qkv(self.attention_norm(x)).unflatten(-1, (self.heads, -1))  # of each query, key and value
        query, key, value = heads.chunk(3, dim=-1)
        scores = torch.einsum("qhd,khd->hqk", turned(query), turned(key)) / query.shape[-1] ** 0.5
        weights = scores.masked_fill(mask == 0, -torch.inf).softmax(dim=-1)
        x = x + self.wo(torch.einsum("hqk,khd->qhd", weights, value).flatten(-2))
        return x + self.ffn(self.ffn_norm(x)), weights


class NeoBert(torch.nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.config = types.SimpleNamespace(model_type="neobert", num_hidden_layers=spec["layers"], to_dict=dict)
        self.encoder = torch.nn.Embedding(spec["vocab"], spec["hidden"])
        self.transformer_encoder = torch.nn.ModuleList(Layer(spec) for _ in range(spec["layers"]))
        self.layer_norm = torch.nn.RMSNorm(spec["hidden"], eps=EPSILON)

    def set_attn_implementation(self, _):
        """There is one."""

    def save_pretrained(self, folder):
        safetensors.torch.save_file(self.state_dict(), pathlib.Path(folder) / "model.safetensors")

    def forward(self, input_ids, attention_mask, **_):
        states, weights = [self.encoder(input_ids[0])], []
        for layer in self.transformer_encoder:
            x, of_layer = layer(states[-1], attention_mask[0])
            states.append(x)
            weights.append(of_layer[None])
        states[-1] = self.layer_norm(states[-1])
        return types.SimpleNamespace(last_hidden_state=states[-1][None], hidden_states=[x[None] for x in states],
                                     attentions=weights)


def stored_ffn(intermediate):
    """Two thirds of it, as a multiple of 8."""
    return -(-int(2 * intermediate / 3) // 8) * 8


def neobert_config(spec, length):
    """config.json of NeoBERT, with other dimensions."""
    code = dict(AutoConfig="model.NeoBERTConfig", AutoModel="model.NeoBERT", AutoModelForMaskedLM="model.NeoBERTLMHead")
    return dict(
        model_type="neobert", auto_map=code, classifier_init_range=0.02, decoder_init_range=0.02,
        dim_head=spec["hidden"] // spec["heads"], embedding_init_range=0.02, hidden_size=spec["hidden"],
        intermediate_size=spec["ffn"], max_length=length, norm_eps=EPSILON, num_attention_heads=spec["heads"],
        num_hidden_layers=spec["layers"], pad_token_id=0, vocab_size=spec["vocab"])
