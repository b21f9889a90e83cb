#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What transformers' attention says of the words of texts, for tiny models that are committed: the mean over the heads
of the first token's attention in the last layer, summed over the tokens of each word. The same on every run.

    make_golden.py      needs: pip install torch transformers (made with 5.23)

Writes expected.json: {model: [{text, words, weights}]}. The models are folders of tests/golden."""

import json
import pathlib

import tokenizers
import torch
import transformers

HERE = pathlib.Path(__file__).parent
MODELS = ["encoder/tiny_distilbert", "encoder/tiny_electra", "encoder/tiny_mpnet", "tokens/bert_splade"]
TEXTS = ["the cat sat on the mat, and the dog sat on the log", "one cat \U0001f600 sat", "The quick brown fox!", ""]


def words_of(text, tokenizer, model):
    encoding = tokenizer.encode(text)
    with torch.no_grad():
        attentions = model(input_ids=torch.tensor([encoding.ids]), output_attentions=True).attentions
    row = attentions[-1][0, :, 0].double().mean(0).tolist()
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    words, weights = [], []
    for token, weight in zip(encoding.tokens, row):
        if token in special:
            continue
        if token.startswith("##"):
            words[-1] += token[2:]
            weights[-1] += weight
        else:
            words.append(token)
            weights.append(weight)
    return {"text": text, "words": words, "weights": weights}


def cases(name):
    folder = HERE.parent / name
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    return [words_of(text, tokenizer, model) for text in TEXTS]


if __name__ == "__main__":
    expected = json.dumps({name: cases(name) for name in MODELS}, indent=1)
    (HERE / "expected.json").write_text(expected + "\n", encoding="utf-8")
