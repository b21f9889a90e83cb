# SPDX-License-Identifier: Apache-2.0
"""Real models from text to embedding, in every number format, against sentence-transformers in f32."""

import numpy as np
import pytest

from harness import golden, parity, processor, settings
from harness.attendant import request, texts
from harness.server import serving

MODELS = {"all-MiniLM-L6-v2": 256, "all-mpnet-base-v2": 384}  # and the tokens that each sees of a text
RELATIVE = 2e-5
# Mean and lowest. A word that is repeated hundreds of times is the furthest away in int8; 0.9965 are real texts.
COSINES = {"bf16": (0.9999, 0.9995), "int8": (0.9975, 0.993)}


@pytest.fixture(scope="module", params=["f32", "bf16", "int8"])
def dtype(request):  # pylint: disable=redefined-outer-name
    if not processor.computes_in(request.param):
        pytest.skip(f"this processor does not compute in {request.param}")
    return request.param


@pytest.fixture(scope="module")
def server(tmp_path_factory, dtype):
    models = {name: settings.real_model(name) for name in MODELS}
    # Loading ends with batches of all sizes, for many minutes with a sanitizer.
    small = ["--max_batch_tokens=512"] if settings.SANITIZED else []
    with serving(tmp_path_factory.mktemp("server"), models, f"--dtype={dtype}", *small) as running:
        yield running


@pytest.mark.parametrize("name", MODELS)
def test_embeddings_are_those_of_sentence_transformers(client, dtype, name):
    strings, token_ids, expected = golden.sentences(name)
    infos = client.encode(request(name, texts(*strings), token_ids=True)).sequences
    assert [list(info.token_ids) for info in infos] == [list(row) for row in token_ids]
    found = client.pooled(name, texts(*strings))
    if dtype == "f32":
        errors = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
        parity.record(name, "embedding of a text", errors.max(), RELATIVE)
        assert errors.max() <= RELATIVE
    else:
        cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
        print(f"{name} {dtype}: mean cosine {cosines.mean():.6f}, lowest {cosines.min():.6f}")
        parity.record(name, "embedding of a text", 1 - cosines.min(), 1 - COSINES[dtype][1], dtype)
        assert cosines.mean() >= COSINES[dtype][0] and cosines.min() >= COSINES[dtype][1]


@pytest.mark.parametrize("name", MODELS)
def test_long_texts_are_cut_where_the_folder_says(client, name):
    infos = client.encode(request(name, texts("word " * 1000))).sequences
    assert [(info.tokens, info.truncated) for info in infos] == [(MODELS[name], True)]


@pytest.mark.parametrize("name", MODELS)
def test_a_text_has_the_same_bits_in_every_batch(client, name):
    strings = golden.sentences(name)[0]
    together = client.pooled(name, texts(*strings))
    for i, string in enumerate(strings[:12]):
        assert client.pooled(name, texts(string)).tobytes() == together[i].tobytes()
