# SPDX-License-Identifier: Apache-2.0
"""Nomic v2, for whose experts transformers has no class: their formulas, put into transformers' Nomic. Names, shapes
and fields of the config are those of the code that comes with nomic-ai/nomic-bert-2048."""

import pathlib

import safetensors.torch
import torch
import transformers

EPSILON, THETA = 1e-5, 3000.0


class Dense(torch.nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.fc1 = torch.nn.Linear(spec["hidden"], spec["ffn"])
        self.fc2 = torch.nn.Linear(spec["ffn"], spec["hidden"])

    def forward(self, x):
        return self.fc2(torch.nn.functional.gelu(self.fc1(x)))


class Router(torch.nn.Module):
    """The chosen experts of each row [rows, top_k] and their weights, which do not sum to 1."""

    def __init__(self, spec):
        super().__init__()
        self.layer = torch.nn.Linear(spec["hidden"], spec["experts"], bias=False)
        self.top_k = spec["top_k"]

    def forward(self, x):
        return self.layer(x).softmax(dim=-1, dtype=torch.float32).topk(self.top_k, dim=-1)


class ExpertWeights(torch.nn.Module):
    """The experts one below the other."""

    def __init__(self, spec):
        super().__init__()
        self.w1 = torch.nn.Parameter(torch.empty(spec["experts"] * spec["ffn"], spec["hidden"]))
        self.w2 = torch.nn.Parameter(torch.empty(spec["experts"] * spec["ffn"], spec["hidden"]))


class Experts(torch.nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.mlp = ExpertWeights(spec)
        self.bias = torch.nn.Parameter(torch.empty(spec["hidden"]))


class MixtureOfExperts(torch.nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.router, self.experts = Router(spec), Experts(spec)
        self.count = spec["experts"]

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = self.router(rows)
        out = torch.zeros_like(rows)
        ups, downs = (weight.chunk(self.count) for weight in (self.experts.mlp.w1, self.experts.mlp.w2))
        for expert, (w1, w2) in enumerate(zip(ups, downs)):
            row, place = (chosen == expert).nonzero(as_tuple=True)
            fed = torch.nn.functional.gelu(rows[row] @ w1.T) @ w2
            out.index_add_(0, row, fed * weights[row, place, None])
        return (out + self.experts.bias).view(x.shape)


def stored(state):
    """With queries, keys and values in one tensor."""
    names = {"embeddings.LayerNorm": "emb_ln", "layers.": "encoder.layers.", "self_attn.o_proj": "attn.out_proj",
             "post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2", "self_attn.q_proj": "attn.Wqkv"}
    tensors = {}
    for name, value in state.items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            value = torch.cat([state[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")])
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        tensors[name] = value.contiguous()
    return tensors


def nomic_moe(spec, length):
    """Experts in every second layer."""
    model = transformers.NomicBertModel(transformers.NomicBertConfig(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], intermediate_size=spec["ffn"], max_position_embeddings=length,
        type_vocab_size=spec["segments"], layer_norm_eps=EPSILON,
        rope_parameters=dict(rope_type="default", rope_theta=THETA)), add_pooling_layer=False)
    for index, layer in enumerate(model.layers):
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(layer.self_attn, name, torch.nn.Linear(spec["hidden"], spec["hidden"]))
        layer.mlp = MixtureOfExperts(spec) if index % 2 == 1 else Dense(spec)
    model.save_pretrained = lambda folder: safetensors.torch.save_file(
        stored(model.state_dict()), pathlib.Path(folder) / "model.safetensors")
    return model


def nomic_moe_config(spec, length):
    """config.json of nomic-embed-text-v2-moe, with other dimensions."""
    code = dict(AutoModel="nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel")
    return dict(
        model_type="nomic_bert", auto_map=code, activation_function="gelu", causal=False, expert_choice_router=False,
        ffn_div=1, layer_norm_epsilon=EPSILON, max_trained_positions=length, mlp_fc1_bias=True, mlp_fc2_bias=True,
        moe_every_n_layers=2, moe_impl="megablocks", moe_normalize_expert_weights=False, moe_resid_pdrop=0.0,
        moe_top_k=spec["top_k"], n_embd=spec["hidden"], n_head=spec["heads"], n_inner=spec["ffn"],
        n_layer=spec["layers"], n_positions=length, num_experts=spec["experts"], num_shared_experts=0,
        parallel_block=False, prenorm=False, qkv_proj_bias=True, rotary_emb_base=THETA, rotary_emb_fraction=1.0,
        rotary_emb_interleaved=False, rotary_emb_scale_base=None, rotary_scaling_factor=None, scale_attn_weights=True,
        type_vocab_size=spec["segments"], use_rms_norm=None, vocab_size=spec["vocab"])
