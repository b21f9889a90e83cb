#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a tiny checkpoint with task adapters (LoRA) as the code of Jina v3 saves them, with random weights, and what each
adapter makes of a few texts. The same on every run.

    make_golden.py      needs: pip install torch transformers tokenizers safetensors (made with transformers 5.23)

The adapters are computed as that code does, in each forward pass: a linear layer computes
x (W + alpha / rank B A)^T, a table looks up in W + alpha / rank A B. The encoder around them is transformers' Jina v3.
expected.json has for each adapter, and for none, the texts' ids with the adapter's instruction before them, the mean of
the last hidden states, normalized, and of the first text the states."""

import json
import pathlib
import shutil
import sys

import safetensors.torch
import torch
import transformers

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent / "encoder"))
import tiny_tokenizers  # noqa: E402

INSTRUCTIONS = {"retrieval.query": "the query: ", "retrieval.passage": "the passage: ", "text-matching": ""}
RANK, ALPHA = 2, 1.5
TEXTS = ["the cat sat on the mat", "A cat, singing in the rain...", "", "the singing cat ate one cat and then another"]
LIMIT = 40
FIELDS = dict(vocab_size=tiny_tokenizers.SIZE, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
              intermediate_size=40, max_position_embeddings=LIMIT, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1,
              bos_token_id=0, eos_token_id=2, hidden_act="gelu")
ROTARY_BASE = 900.0


class Adapted(torch.nn.Module):
    """A linear layer or a table with adapters, in the place of one without."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.task, self.table = layer, None, isinstance(layer, torch.nn.Embedding)
        rows, columns = layer.weight.shape
        a, b = ((rows, RANK), (RANK, columns)) if self.table else ((RANK, columns), (rows, RANK))
        self.lora_a = torch.randn(len(INSTRUCTIONS), *a) * 0.3
        self.lora_b = torch.randn(len(INSTRUCTIONS), *b) * 0.3

    def forward(self, inputs):
        weight = self.layer.weight
        if self.task is not None:
            a, b = self.lora_a[self.task], self.lora_b[self.task]
            weight = weight + (torch.matmul(a, b) if self.table else torch.matmul(b, a)) * (ALPHA / RANK)
        if self.table:
            return torch.nn.functional.embedding(inputs, weight)
        return torch.nn.functional.linear(inputs, weight, self.layer.bias)


def saved_name(path):
    """Of a module of transformers in the checkpoints of Jina's code."""
    for new, old in (("embeddings.LayerNorm", "emb_ln"), ("layers.", "encoder.layers."), ("self_attn.o_proj", "mixer.out_proj"),
                     ("post_attention_layernorm", "norm1"), ("post_mlp_layernorm", "norm2")):
        path = path.replace(new, old)
    return "roberta." + path


def state_of(model, adapted):
    """The tensors of the checkpoint. Queries, keys and values are one layer there: their adapters share A."""
    state = {}
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.LayerNorm):
            state |= {f"{saved_name(path)}.{name}": value for name, value in module.state_dict().items()}
    for path, module in adapted.items():
        name = saved_name(path)
        state[f"{name}.parametrizations.weight.original"] = module.layer.weight
        state[f"{name}.parametrizations.weight.0.lora_A"] = module.lora_a
        state[f"{name}.parametrizations.weight.0.lora_B"] = module.lora_b
        if not module.table:
            state[f"{name}.bias"] = module.layer.bias
    return {name: value.detach().contiguous() for name, value in state.items()}


def join_qkv(state):
    for prefix in sorted({name.split("self_attn.")[0] for name in state if "self_attn." in name}):
        parts = [f"{prefix}self_attn.{letter}_proj." for letter in "qkv"]
        for suffix, dim in (("parametrizations.weight.original", 0), ("parametrizations.weight.0.lora_B", 1), ("bias", 0)):
            state[f"{prefix}mixer.Wqkv.{suffix}"] = torch.cat([state.pop(part + suffix) for part in parts], dim)
        shared = [state.pop(part + "parametrizations.weight.0.lora_A") for part in parts]
        assert all(torch.equal(shared[0], other) for other in shared)
        state[f"{prefix}mixer.Wqkv.parametrizations.weight.0.lora_A"] = shared[0].clone()
    return state


def adapt(model):
    """Adapters on every linear layer and table, as that code's `apply` registers them."""
    adapted = {}
    for path, module in list(model.named_modules()):
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            adapted[path] = Adapted(module)
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, adapted[path])
    for path, module in adapted.items():
        if path.endswith((".k_proj", ".v_proj")):
            module.lora_a = adapted[path[:-len("k_proj")] + "q_proj"].lora_a
    return adapted


@torch.no_grad()
def outputs(model, tokenizer, instruction, text):
    ids = tokenizer.encode(instruction + text).ids
    states = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long)).last_hidden_state[0]
    embedding = torch.nn.functional.normalize(states.mean(0), dim=0)
    case = {"text": text, "ids": ids, "embedding": rounded(embedding)}
    return case | ({"states": [rounded(row) for row in states]} if text == TEXTS[0] else {})


def rounded(values):
    return [float(f"{value:.8g}") for value in values.tolist()]


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def save(folder, state, tokenizer):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    safetensors.torch.save_file(state, folder / "model.safetensors", {"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    # XLM-R's class does not take all of that file.
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}\n')
    code = "jinaai/xlm-roberta-flash-implementation--modeling_lora.XLMRobertaLoRA"
    write_json(folder / "config.json", FIELDS | {
        "architectures": ["XLMRobertaModel"], "auto_map": {"AutoModel": code}, "load_trained_adapters": True,
        "lora_adaptations": list(INSTRUCTIONS), "lora_alpha": ALPHA, "lora_dropout_p": 0.0,
        "lora_main_params_trainable": False, "lora_rank": RANK, "model_type": "xlm-roberta",
        "position_embedding_type": "rotary", "rotary_emb_base": ROTARY_BASE, "task_instructions": INSTRUCTIONS,
        "use_flash_attn": True})
    steps = [("", "custom_st.Transformer"), ("1_Pooling", "sentence_transformers.models.Pooling"),
             ("2_Normalize", "sentence_transformers.models.Normalize")]
    write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": kind}
                                         for i, (path, kind) in enumerate(steps)])
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})


def main():
    torch.manual_seed(20240918)
    torch.set_num_threads(1)
    model = transformers.JinaEmbeddingsV3Model(transformers.JinaEmbeddingsV3Config(
        **FIELDS, rope_parameters={"rope_type": "default", "rope_theta": ROTARY_BASE})).eval()
    for name, parameter in sorted(model.named_parameters()):  # far from the small numbers of an initialization
        noise = torch.randn(parameter.shape)
        if "norm" in name.lower():
            parameter.data = noise * 0.2 + name.endswith("weight")
        else:
            parameter.data = noise * (0.2 if parameter.dim() == 1 else 1.0 if "embed" in name else 1.4 / parameter.shape[1] ** 0.5)
    adapted = adapt(model)
    tokenizer = tiny_tokenizers.unigram()
    folder = HERE / "jina_v3"
    save(folder, join_qkv(state_of(model, adapted)), tokenizer)
    tokenizer.enable_truncation(LIMIT)
    expected = {}
    for task, adapter in [(None, ""), *enumerate(INSTRUCTIONS)]:
        for module in adapted.values():
            module.task = task
        expected[adapter] = [outputs(model, tokenizer, INSTRUCTIONS.get(adapter, ""), text) for text in TEXTS]
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
