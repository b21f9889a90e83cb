#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny models with heads on tokens, with random weights, and what their outputs are. The same on every run.

    make_golden.py [NAME ...]      needs: pip install torch transformers tokenizers safetensors (made with transformers 5.23)

Each folder has config.json, model.safetensors, tokenizer.json, and expected.json: for each text its ids, and of a
masked language model the sparse vector (SPLADE as transformers' logits and the formula of sentence-transformers'
SpladePooling make it) and the logits at mask tokens, of a classifier of tokens the logits of each token, of bge_m3 the
three outputs as FlagEmbedding's formulas make them."""

import json
import pathlib
import sys

import safetensors.torch
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from esm_tokenizer import PROTEINS, EsmTokenizer  # noqa: E402
from tiny_heads import BERT, DISTILBERT, ESM, LIMIT, MODERNBERT, ROBERTA, SMALL, family, make_model, wordpiece  # noqa: E402

TEXTS = ["the quick brown fox", "never MASK again", "how MASK is the MASK? it has 330 metres.", "", "caf\u00e9 MASK " * 30]


def with_mask():
    return wordpiece("[MASK]")


ROBERTA = ROBERTA | {"layer_norm_eps": 1e-5}
LABELS = {"id2label": {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC"}, "label2id": {"O": 0, "B-PER": 1, "I-PER": 2, "B-LOC": 3}}
# name: (model class, config class, options of the config, tokenizer, sentence-transformers' SpladePooling)
MODELS = {
    "bert_splade": ("BertForMaskedLM", "BertConfig", BERT, with_mask, None),
    "bert_splade_sum": ("BertForMaskedLM", "BertConfig", BERT, with_mask,
                        {"pooling_strategy": "sum", "activation_function": "log1p_relu"}),
    "albert_masked_lm": ("AlbertForMaskedLM", "AlbertConfig", BERT | {"embedding_size": 20}, with_mask, None),
    "albert_tokens": ("AlbertForTokenClassification", "AlbertConfig", BERT | {"embedding_size": 20} | LABELS, with_mask, None),
    "electra_masked_lm": ("ElectraForMaskedLM", "ElectraConfig", BERT | {"embedding_size": 20}, with_mask, None),
    "electra_tokens": ("ElectraForTokenClassification", "ElectraConfig", BERT | {"embedding_size": 20} | LABELS, with_mask,
                       None),
    "distilbert_splade": ("DistilBertForMaskedLM", "DistilBertConfig", DISTILBERT, with_mask,
                          {"pooling_strategy": "max", "activation_function": "relu"}),
    "roberta_masked_lm": ("RobertaForMaskedLM", "RobertaConfig", ROBERTA, family("roberta"), None),
    "mpnet_masked_lm": ("MPNetForMaskedLM", "MPNetConfig", SMALL | {"max_position_embeddings": LIMIT + 2}, with_mask, None),
    "esm_masked_lm": ("EsmForMaskedLM", "EsmConfig", ESM, EsmTokenizer, None),
    "esm_tokens": ("EsmForTokenClassification", "EsmConfig", ESM | LABELS, EsmTokenizer, None),
    "modernbert_masked_lm": ("ModernBertForMaskedLM", "ModernBertConfig", MODERNBERT, family("modernbert"), None),
    "nomic_bert_masked_lm": ("NomicBertForMaskedLM", "NomicBertConfig", BERT | {"type_vocab_size": 2}, with_mask, None),
    "gte_masked_lm": ("GteForMaskedLM", "GteConfig", BERT | {"type_vocab_size": 1}, with_mask, None),
    "nomic_bert_tokens": ("NomicBertForTokenClassification", "NomicBertConfig", BERT | {"type_vocab_size": 2} | LABELS,
                          with_mask, None),
    "gte_tokens": ("GteForTokenClassification", "GteConfig", BERT | {"type_vocab_size": 1} | LABELS, with_mask, None),
    "deberta_v2_tokens": ("DebertaV2ForTokenClassification", "DebertaV2Config",
                          BERT | LABELS | {"type_vocab_size": 0, "relative_attention": True, "position_buckets": 8,
                                           "share_att_key": True, "norm_rel_ebd": "layer_norm",
                                           "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
                          with_mask, None),
    "bert_tokens": ("BertForTokenClassification", "BertConfig", BERT | LABELS, with_mask, None),
    "distilbert_tokens": ("DistilBertForTokenClassification", "DistilBertConfig", DISTILBERT | LABELS, with_mask, None),
    "modernbert_tokens": ("ModernBertForTokenClassification", "ModernBertConfig", MODERNBERT | LABELS, family("modernbert"),
                          None),
    "bge_m3": ("XLMRobertaModel", "XLMRobertaConfig", ROBERTA, family("xlm_roberta"), None),
}
IGNORED = [0, 1, 2, 3]  # <s>, <pad>, </s>, <unk>


def save_modules(folder, *steps):
    names = [("", "base.modules.Transformer"), *steps]
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.{kind}"}
         for i, (path, kind) in enumerate(names)], indent=1) + "\n")


def save_config(folder, name, config):
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def splade(logits, pooling):
    values = torch.log1p(torch.relu(logits.double()))
    if pooling and pooling["activation_function"] == "log1p_relu":
        values = torch.log1p(values)
    return values.sum(0) if pooling and pooling["pooling_strategy"] == "sum" else values.max(0).values


def masked_lm(model, inputs, mask, pooling):
    logits = model(**inputs).logits[0]
    masks = [i for i, token in enumerate(inputs["input_ids"][0].tolist()) if token == mask]
    return {"sparse": rounded(splade(logits, pooling)), "masks": masks, "logits": [rounded(logits[i]) for i in masks]}


def rounded(values):
    return [float(f"{value:.8g}") for value in values.tolist()]


class M3:
    """The heads of BGE-M3 and their formulas."""

    def __init__(self, hidden):
        self.sparse = torch.nn.Linear(hidden, 1)
        self.vectors = torch.nn.Linear(hidden, 24)
        for linear in (self.sparse, self.vectors):
            torch.nn.init.normal_(linear.weight, std=0.3)
            torch.nn.init.normal_(linear.bias, std=0.3)

    def save(self, folder):
        for name, linear in (("sparse_linear", self.sparse), ("colbert_linear", self.vectors)):
            safetensors.torch.save_file({key: value.detach() for key, value in linear.state_dict().items()},
                                        folder / f"{name}.safetensors")
        save_modules(folder, ("1_Pooling", "models.Pooling"), ("2_Normalize", "models.Normalize"))
        save_config(folder, "1_Pooling", {"word_embedding_dimension": 32, "pooling_mode_cls_token": True,
                                          "pooling_mode_mean_tokens": False})

    def outputs(self, model, inputs):
        states = model(**inputs).last_hidden_state[0]
        weights = {}
        for token, weight in zip(inputs["input_ids"][0].tolist(), torch.relu(self.sparse(states))[:, 0].tolist()):
            if token not in IGNORED and weight > 0:
                weights[token] = max(weight, weights.get(token, 0))
        vectors = torch.nn.functional.normalize(self.vectors(states[1:]), dim=-1)
        return {"dense": rounded(torch.nn.functional.normalize(states[0], dim=-1)),
                "weights": [[token, weights[token]] for token in sorted(weights)],
                "vectors": [rounded(row) for row in vectors]}


def make(name):
    model_class, config_class, options, make_tokenizer, pooling = MODELS[name]
    folder = HERE / name
    model, tokenizer = make_model(folder, model_class, config_class, options, make_tokenizer)
    if pooling:
        save_modules(folder, ("1_SpladePooling", "sparse_encoder.modules.SpladePooling"))
        save_config(folder, "1_SpladePooling", pooling)
    m3 = M3(32) if name == "bge_m3" else None
    if m3:
        m3.save(folder)
    tokenizer.enable_truncation(LIMIT)
    mask_token = "<mask>" if tokenizer.token_to_id("<mask>") is not None else "[MASK]"
    expected = []
    of_proteins = model.config.model_type == "esm"
    for text in PROTEINS if of_proteins else (text.replace("MASK", mask_token) for text in TEXTS):
        ids = tokenizer.encode(text).ids
        inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
        case = {"text": text, "ids": ids}
        with torch.no_grad():
            if m3:
                case |= m3.outputs(model, inputs)
            elif "MaskedLM" in model_class:
                case |= masked_lm(model, inputs, tokenizer.token_to_id(mask_token), pooling)
            else:
                case["logits"] = [rounded(row) for row in model(**inputs).logits[0]]
        expected.append(case)
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or MODELS:
        make(chosen)
