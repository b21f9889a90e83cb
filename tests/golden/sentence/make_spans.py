#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What late chunking gives for the committed folders: embeddings of spans of texts, by the modules of
sentence-transformers. The same on every run.

    make_spans.py      needs: pip install torch transformers sentence-transformers (made with 6.2)

Each folder gets spans.json: texts, the spans [begin, end) of their tokens, and an embedding for each. The transformer
runs once over a whole text; then the pooling and the modules behind it see the tokens of one span."""

import json
import pathlib

import torch
from sentence_transformers import SentenceTransformer

HERE = pathlib.Path(__file__).parent
FOLDERS = ["many_modules", "prompts"]
TEXTS = ["the cat sat on the mat and the dog sat on the log", "one cat", ""]


def spans_of(tokens):
    """Halves, a part of their border, one token, all; not more than there are tokens."""
    half = tokens // 2
    spans = [[0, half], [half, tokens], [half // 2, min(tokens, half + 2)], [tokens - 1, tokens], [0, tokens]]
    return spans[:tokens]


def embed(model, features, begin, end):
    part = {"token_embeddings": features["token_embeddings"][:, begin:end],
            "attention_mask": features["attention_mask"][:, begin:end]}
    for module in list(model)[1:]:
        part = module(part)
    return part["sentence_embedding"][0].tolist()


def case(model, text):
    with torch.no_grad():
        features = model[0](model.tokenizer([text], return_tensors="pt"))
        spans = spans_of(features["token_embeddings"].shape[1])
        return {"text": text, "spans": spans, "embeddings": [embed(model, features, *span) for span in spans]}


if __name__ == "__main__":
    for name in FOLDERS:
        loaded = SentenceTransformer(str(HERE / name), device="cpu").eval()
        cases = [case(loaded, text) for text in TEXTS]
        (HERE / name / "spans.json").write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
