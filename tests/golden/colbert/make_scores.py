#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PyLate itself scores with the models that make_golden.py made: scores.json of a folder has [queries,
documents], each of expected.json's texts as a query against each as a document.

    make_scores.py      needs: pip install pylate (made with pylate 1.6, sentence-transformers 5.3)

PyLate does not load pylate_modernbert: it wants a mask token, though no query is filled up there."""

import json
import pathlib

import torch
from pylate import models, scores

HERE = pathlib.Path(__file__).parent
NAMES = ("pylate_bert", "stanford_bert")


def main():
    torch.set_num_threads(1)
    for name in NAMES:
        folder = HERE / name
        texts = json.loads((folder / "expected.json").read_text())["texts"]
        model = models.ColBERT(str(folder), device="cpu")
        sides = [model.encode(texts, is_query=is_query, show_progress_bar=False) for is_query in (True, False)]
        queries, documents = [[torch.tensor(one)[None] for one in side] for side in sides]
        found = [[float(f"{scores.colbert_scores(query, document).item():.8g}") for document in documents]
                 for query in queries]
        (folder / "scores.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
