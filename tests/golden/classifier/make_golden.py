#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny sequence classifiers with random weights, and what transformers answers for texts and pairs of texts.
The same on every run.

    make_golden.py [NAME ...]      needs: pip install torch transformers tokenizers (made with transformers 5.23)

Each folder has config.json, model.safetensors, tokenizer.json, and expected.json: for each input, one text or two,
the logits and the scores."""

import json
import pathlib
import shutil
import sys

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
TOKENIZERS = HERE.parent / "tokenizer" / "families"
LIMIT = 40
LINES = ["the quick brown fox jumps over the lazy dog", "how tall is the tower? it has 330 metres.",
         "caf\u00e9 na\u00efve r\u00e9sum\u00e9", "what a film! never again; prices fell, and it rains"] * 3
INPUTS = [["the quick brown fox"], ["never again"], [""], ["caf\u00e9 " * 30], ["how tall is the tower?", "it has 330 metres."],
          ["how tall is the tower?", "it rains"], ["fox", ""], ["the lazy dog " * 9, "jumps over " * 9], ["dog", "prices fell " * 30]]


def wordpiece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(LINES, trainers.WordPieceTrainer(
        vocab_size=120, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def family(name):
    return lambda: Tokenizer.from_file(str(TOKENIZERS / f"{name}.json"))


SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
STARS = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
# name: (model class, config class, options of the config, tokenizer, more for config.json)
MODELS = {
    "bert_reranker": ("BertForSequenceClassification", "BertConfig",
                      SMALL | {"num_labels": 1, "max_position_embeddings": LIMIT}, wordpiece, {}),
    "electra_cross_encoder": ("ElectraForSequenceClassification", "ElectraConfig",
                              SMALL | {"num_labels": 1, "max_position_embeddings": LIMIT, "embedding_size": 32}, wordpiece,
                              {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}),
    "distilbert_classifier": ("DistilBertForSequenceClassification", "DistilBertConfig",
                              {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 2, "num_labels": 2,
                               "max_position_embeddings": LIMIT}, wordpiece, {}),
    "roberta_classifier": ("RobertaForSequenceClassification", "RobertaConfig",
                           SMALL | STARS | {"max_position_embeddings": LIMIT + 2, "type_vocab_size": 1, "pad_token_id": 1,
                                            "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-5},
                           family("roberta"), {}),
    "xlm_roberta_multi_label": ("XLMRobertaForSequenceClassification", "XLMRobertaConfig",
                                SMALL | STARS | {"max_position_embeddings": LIMIT + 2, "type_vocab_size": 1,
                                                 "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
                                                 "problem_type": "multi_label_classification"}, family("xlm_roberta"), {}),
    "mpnet_reranker": ("MPNetForSequenceClassification", "MPNetConfig",
                       SMALL | {"num_labels": 1, "max_position_embeddings": LIMIT + 2}, wordpiece, {}),
    "deberta_v2_reranker": ("DebertaV2ForSequenceClassification", "DebertaV2Config",
                            SMALL | {"num_labels": 1, "max_position_embeddings": LIMIT, "type_vocab_size": 0,
                                     "relative_attention": True, "position_buckets": 8, "share_att_key": True,
                                     "norm_rel_ebd": "layer_norm", "pos_att_type": ["p2c", "c2p"],
                                     "position_biased_input": False}, wordpiece, {}),
    "modernbert_reranker": ("ModernBertForSequenceClassification", "ModernBertConfig",
                            SMALL | {"num_labels": 1, "max_position_embeddings": LIMIT, "pad_token_id": 3, "bos_token_id": 1,
                                     "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 16,
                                     "classifier_pooling": "mean"}, family("modernbert"), {}),
}


def activate(logits, config, more):
    if more:
        return logits
    if config.num_labels == 1 or config.problem_type == "multi_label_classification":
        return torch.sigmoid(logits)
    return torch.softmax(logits, -1)


def make(name):
    model_class, config_class, options, make_tokenizer, more = MODELS[name]
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(sum(name.encode()))
    tokenizer = make_tokenizer()
    config = getattr(transformers, config_class)(vocab_size=tokenizer.get_vocab_size(), **options)
    model = getattr(transformers, model_class)(config).eval()
    for parameter in model.parameters():  # far from the small numbers of an initialization
        torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else torch.nn.init.normal_(parameter, 0.5, 0.4)
    model.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text()) | more
    (folder / "config.json").write_text(json.dumps(settings, indent=1) + "\n")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    tokenizer.enable_truncation(LIMIT, strategy="longest_first")
    expected = []
    for texts in INPUTS:
        encoding = tokenizer.encode(*texts)
        inputs = {"input_ids": torch.tensor([encoding.ids]), "attention_mask": torch.ones(1, len(encoding.ids), dtype=torch.long)}
        if getattr(config, "type_vocab_size", 1) > 1:
            inputs["token_type_ids"] = torch.tensor([encoding.type_ids])
        with torch.no_grad():
            logits = model(**inputs).logits[0]
        expected.append({"texts": texts, "logits": logits.tolist(), "scores": activate(logits, config, more).tolist()})
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or MODELS:
        make(chosen)
