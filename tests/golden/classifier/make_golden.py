#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny sequence classifiers with random weights, and what transformers answers for texts and pairs of texts.
The same on every run.

    make_golden.py [NAME ...]      needs: pip install torch transformers tokenizers (made with transformers 5.23)

Each folder has config.json, model.safetensors, tokenizer.json, and expected.json: for each input, one text or two,
the logits and the scores."""

import json
import pathlib
import sys

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from esm_tokenizer import PROTEINS, EsmTokenizer  # noqa: E402
from tiny_heads import BERT, DECODER, DISTILBERT, ESM, LIMIT, MODERNBERT, ROBERTA, SMALL, family, make_model, wordpiece  # noqa: E402

INPUTS = [["the quick brown fox"], ["never again"], [""], ["caf\u00e9 " * 30], ["how tall is the tower?", "it has 330 metres."],
          ["how tall is the tower?", "it rains"], ["fox", ""], ["the lazy dog " * 9, "jumps over " * 9], ["dog", "prices fell " * 30]]


PROTEIN_INPUTS = [*([text] for text in PROTEINS), [PROTEINS[0], PROTEINS[2]], [PROTEINS[5], PROTEINS[4]], [PROTEINS[1], PROTEINS[5]]]

STARS = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
# name: (model class, config class, options of the config, tokenizer, more for config.json)
MODELS = {
    "bert_reranker": ("BertForSequenceClassification", "BertConfig", BERT | {"num_labels": 1}, wordpiece, {}),
    "albert_classifier": ("AlbertForSequenceClassification", "AlbertConfig",
                          BERT | STARS | {"embedding_size": 20, "type_vocab_size": 1}, wordpiece, {}),
    "electra_cross_encoder": ("ElectraForSequenceClassification", "ElectraConfig",
                              BERT | {"num_labels": 1, "embedding_size": 20}, wordpiece,
                              {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}),
    "distilbert_classifier": ("DistilBertForSequenceClassification", "DistilBertConfig", DISTILBERT | {"num_labels": 2},
                              wordpiece, {}),
    "roberta_classifier": ("RobertaForSequenceClassification", "RobertaConfig", ROBERTA | STARS | {"layer_norm_eps": 1e-5},
                           family("roberta"), {}),
    "xlm_roberta_multi_label": ("XLMRobertaForSequenceClassification", "XLMRobertaConfig",
                                ROBERTA | STARS | {"problem_type": "multi_label_classification"}, family("xlm_roberta"), {}),
    "mpnet_reranker": ("MPNetForSequenceClassification", "MPNetConfig",
                       SMALL | {"num_labels": 1, "max_position_embeddings": LIMIT + 2}, wordpiece, {}),
    "esm_classifier": ("EsmForSequenceClassification", "EsmConfig", ESM | STARS, EsmTokenizer, {}),
    "deberta_v2_reranker": ("DebertaV2ForSequenceClassification", "DebertaV2Config",
                            BERT | {"num_labels": 1, "type_vocab_size": 0, "relative_attention": True,
                                    "position_buckets": 8, "share_att_key": True, "norm_rel_ebd": "layer_norm",
                                    "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}, wordpiece, {}),
    "modernbert_reranker": ("ModernBertForSequenceClassification", "ModernBertConfig",
                            MODERNBERT | {"num_labels": 1, "classifier_pooling": "mean"}, family("modernbert"), {}),
    "nomic_bert_reranker": ("NomicBertForSequenceClassification", "NomicBertConfig",
                            BERT | {"num_labels": 1, "type_vocab_size": 2}, wordpiece, {}),
    "gte_classifier": ("GteForSequenceClassification", "GteConfig", BERT | {"type_vocab_size": 1} | STARS, wordpiece, {}),
    "jina_v3_reranker": ("JinaEmbeddingsV3ForSequenceClassification", "JinaEmbeddingsV3Config",
                         ROBERTA | {"num_labels": 1, "max_position_embeddings": LIMIT}, family("xlm_roberta"), {}),
    "gemma3_classifier": ("Gemma3TextForSequenceClassification", "Gemma3TextConfig",
                          DECODER | STARS | {"use_bidirectional_attention": True, "sliding_window": 8}, family("roberta"), {}),
    # Texts end in the padding token.
    "qwen3_reranker": ("Qwen3ForSequenceClassification", "Qwen3Config", DECODER | {"num_labels": 1, "pad_token_id": 2},
                       family("roberta"), {}),
    "qwen2_reranker": ("Qwen2ForSequenceClassification", "Qwen2Config", DECODER | {"num_labels": 1}, family("roberta"),
                       {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}),
    # Computed here as NVIDIA's code does.
    "llama_bidirec_reranker": ("LlamaForSequenceClassification", "LlamaConfig", DECODER | {"num_labels": 1, "is_causal": False},
                               family("llama"), {"architectures": ["LlamaBidirectionalForSequenceClassification"],
                                                 "model_type": "llama_bidirec", "is_causal": None, "pooling": "avg", "temperature": 0.5}),
}


def pooled_logits(model, inputs, temperature):
    states = model.model(**inputs).last_hidden_state[0]
    return model.score(states.mean(0)) / temperature


def activate(logits, config, more):
    if "sentence_transformers" in more:
        return logits
    if config.num_labels == 1 or config.problem_type == "multi_label_classification":
        return torch.sigmoid(logits)
    return torch.softmax(logits, -1)


def make(name):
    model_class, config_class, options, make_tokenizer, more = MODELS[name]
    folder = HERE / name
    model, tokenizer = make_model(folder, model_class, config_class, options, make_tokenizer)
    settings = json.loads((folder / "config.json").read_text()) | more
    (folder / "config.json").write_text(json.dumps(settings, indent=1) + "\n")
    if model.config.model_type in ("qwen2", "qwen3"):  # whose class does not take all of the file
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
    tokenizer.enable_truncation(LIMIT, strategy="longest_first")
    expected = []
    for texts in PROTEIN_INPUTS if model.config.model_type == "esm" else INPUTS:
        encoding = tokenizer.encode(*texts)
        inputs = {"input_ids": torch.tensor([encoding.ids]), "attention_mask": torch.ones(1, len(encoding.ids), dtype=torch.long)}
        if getattr(model.config, "type_vocab_size", 1) > 1:
            inputs["token_type_ids"] = torch.tensor([encoding.type_ids])
        with torch.no_grad():
            temperature = more.get("temperature")
            logits = pooled_logits(model, inputs, temperature) if temperature else model(**inputs).logits[0]
        expected.append({"texts": texts, "logits": logits.tolist(), "scores": activate(logits, model.config, more).tolist()})
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or MODELS:
        make(chosen)
