# SPDX-License-Identifier: Apache-2.0
"""How far an engine's embeddings of real texts are from PyTorch's in f32."""

import json

import numpy


def ranks(values):
    order = numpy.empty(len(values))
    order[numpy.argsort(values, kind="stable")] = numpy.arange(len(values))
    return order


def compare(embeddings, reference):
    """Cosines to the reference, and Spearman's correlation of the similarities of all pairs of texts."""
    cosines = (embeddings * reference).sum(axis=1)
    pairs = numpy.triu_indices(len(reference), 1)
    similarities = [ranks((vectors @ vectors.T)[pairs]) for vectors in (embeddings, reference)]
    return {"cosine_mean": float(cosines.mean()), "cosine_min": float(cosines.min()),
            "spearman": float(numpy.corrcoef(similarities)[0, 1]), "texts": len(reference)}


def measure(engine, folder):
    ids = json.loads((folder / "ids.json").read_text())
    reference = numpy.array(json.loads((folder / "reference.json").read_text()))
    embeddings = [engine.ask("embed " + " ".join(map(str, sequence)))["embedding"] for sequence in ids]
    return compare(numpy.array(embeddings), reference)
