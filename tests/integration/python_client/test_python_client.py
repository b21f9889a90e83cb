# SPDX-License-Identifier: Apache-2.0
"""The Python client's methods against a server; answers compare with transformers' and with plain formulas."""

import asyncio
import json
import shutil
import xml.etree.ElementTree

import ml_dtypes
import numpy as np
import pytest

import attendant
from attendant import operations
from harness import settings

GOLDEN = settings.ROOT / "tests" / "golden" / "classifier"
IDS = [101, 1037, 2158, 2003, 5983, 24857, 1012, 102]  # "A man is eating pasta."
TEXT = "A man is eating pasta."


def test_embed_is_transformers(client, sentences):
    texts, _, expected = sentences
    rows = client.embed(texts)
    assert np.abs(rows - expected).max() <= 1e-5
    assert np.array_equal(client.embed(iter(texts), batch_size=1), rows)
    assert np.array_equal(client.embed(texts[0]), rows[0])


def test_inputs_of_every_kind(client):
    row = client.embed(TEXT)
    assert not row.flags.writeable
    for ids in (IDS, np.array(IDS), attendant.TokenIds(IDS), attendant.TokenIds(IDS, [1] * 8, [0] * 8)):
        assert np.array_equal(client.embed([ids])[0], row)
    padded = np.array([IDS + [0, 0], IDS[:5] + [102] + [0] * 4])
    batch = attendant.PaddedBatch(padded, padded > 0)
    assert np.array_equal(client.embed(batch)[0], row)
    states = client.encode(batch, hidden_layers=[0, 6])
    assert states.last_hidden_state.shape == (2, 10, 384) and not states.last_hidden_state[1, 6:].any()
    assert states.hidden_states.shape == (2, 2, 10, 384)
    assert np.array_equal(states.hidden_states[:, 1], states.last_hidden_state)


def test_formats_of_an_embedding(client):
    exact = client.embed(TEXT, dims=64, normalize=True, pooling="mean")
    assert exact.shape == (64,) and abs(np.linalg.norm(exact) - 1) < 1e-6
    options = {"dims": 64, "normalize": True, "pooling": "mean"}
    half = client.embed(TEXT, dtype="float16", **options)
    assert half.dtype == np.float16 and np.array_equal(half, exact.astype(np.float16))
    brain = client.embed(TEXT, dtype="bfloat16", **options)
    assert brain.dtype == np.float32 and np.array_equal(brain, exact.astype(ml_dtypes.bfloat16).astype(np.float32))


def test_chunks_are_pooled_from_one_pass(client):
    texts = [TEXT + " And a woman drinks a glass of water.", TEXT]
    found = client.embed_chunks(texts, 6, normalize=False)
    states = client.encode(texts).last_hidden_state
    for each, rows in zip(found, states, strict=True):
        assert len(each.spans) == -(-len(rows) // 6) and [each.spans[0, 0], each.spans[-1, 1]] == [0, len(rows)]
        for (begin, end), embedding in zip(each.spans, each.embeddings, strict=True):
            assert end - begin <= 6 and np.allclose(embedding, rows[begin:end].mean(0), atol=1e-5)
    alone = client.embed_chunks(texts, 6, normalize=False, batch_size=1)
    assert all(np.array_equal(one.embeddings, each.embeddings) for one, each in zip(alone, found, strict=True))
    assert np.array_equal(client.embed_chunks(TEXT, 8)[0].embeddings[0], client.embed(TEXT))
    with pytest.raises(ValueError, match="chunk_tokens is 0"):
        client.embed_chunks(TEXT, 0)


def test_encode(client):
    result = client.encode([TEXT, "Short."], pooled=True, hidden_layers=[0, 6], attention=True, layers=[5], heads=[1, 0],
                           token_ids=True, tokens=True)
    assert result.model == "minilm" and result.lengths == [8, 4] and result.truncated == [False, False]
    assert [states.shape for states in result.last_hidden_state] == [(8, 384), (4, 384)]
    assert all(np.array_equal(states[1], last)
               for states, last in zip(result.hidden_states, result.last_hidden_state))
    assert result.token_ids[0] == IDS and result.tokens[1] == ["[CLS]", "short", ".", "[SEP]"]
    assert [weights.shape for weights in result.attention] == [(1, 2, 8, 8), (1, 2, 4, 4)]
    assert np.allclose(result.attention[0].sum(-1), 1, atol=1e-5)
    assert np.array_equal(result.pooled[0], client.embed(TEXT))
    assert result.timings.total_us > 0
    assert client.encode([TEXT]).pooled is None


def test_errors(client, server):
    with pytest.raises(attendant.NotFoundError, match="nobody"):
        client.embed(TEXT, model="nobody")
    for nothing in (None, 5):
        with pytest.raises(TypeError, match=f"inputs are a text, .*, not {nothing}"):
            client.embed(nothing)
    with pytest.raises(ValueError, match="256") as caught:
        client.embed("word " * 1000, truncation="none")
    assert caught.value.request_id
    assert client.encode(["word " * 1000]).truncated == [True]
    with attendant.Client(server.grpc) as unnamed, pytest.raises(ValueError, match="2 models.*minilm, tiny"):
        unnamed.embed(TEXT)


def test_models_and_health(client):
    models = {model.name: model for model in client.models()}
    assert set(models) == {"minilm", "tiny"}
    minilm = models["minilm"]
    assert (minilm.state, minilm.pooling, minilm.hidden, minilm.labels) == ("ready", "mean", 384, ())
    assert client.health() and client.health("minilm")
    with pytest.raises(attendant.NotFoundError):
        client.health("nobody")


def test_models_are_loaded_and_unloaded(client, start_server, tmp_path):
    with pytest.raises(attendant.PermissionDeniedError, match="--model_control"):
        client.load_model("tiny")
    shutil.copytree(settings.TINY_MODEL, tmp_path / "repository" / "toy")
    server = start_server({}, f"--model_repository={tmp_path / 'repository'}", "--model_control=explicit")
    with attendant.Client(server.grpc) as changing:
        changing.load_model("toy")
        assert changing.embed([[5, 6]], model="toy").shape == (1, 48)
        changing.unload_model("toy")
        with pytest.raises(attendant.NotFoundError, match="nobody"):
            changing.load_model("nobody")
        assert [model.state for model in changing.models()] == ["unloaded"]


def test_rerank_and_classify(heads):
    cases = json.loads((GOLDEN / "roberta_classifier" / "expected.json").read_text(encoding="utf-8"))
    inputs = [case["texts"][0] if len(case["texts"]) == 1 else tuple(case["texts"]) for case in cases]
    expected = np.array([case["scores"] for case in cases])
    with attendant.Client(heads.grpc, model="roberta_classifier") as client:
        found = client.classify(inputs, batch_size=2)
        assert found.labels == ("bad", "fair", "good") and np.abs(found.scores - expected).max() < 2e-5
        assert found[0][0].score == found.scores[0].max() and len(list(found)) == len(inputs)
        assert client.classify(inputs[:1], labels=["x", "y", "z"]).labels == ("x", "y", "z")
        with pytest.raises(attendant.InternalError, match="3 scores"):
            client.classify(inputs[:1], labels=["x"])
        passages = ["it rains", "it has 330 metres.", "prices fell"]
        ranks = client.rerank("how tall?", passages, model="bert_reranker", batch_size=2)
        scores = [client.classify([("how tall?", text)], model="bert_reranker").scores[0, 0] for text in passages]
        assert [rank.index for rank in ranks] == list(np.argsort(-np.array(scores)))
        assert [(rank.score, rank.text) for rank in ranks] == [(scores[rank.index], passages[rank.index]) for rank in ranks]
        assert len(client.rerank("how tall?", passages, model="bert_reranker", top_k=1)) == 1


def softmax_attention(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights, weights @ value


def test_attend(client):
    generator = np.random.default_rng(1)
    query, key, value = (generator.normal(size=(2, 3, length, 8)).astype(np.float32) for length in (4, 6, 6))
    weights, output = softmax_attention(query, key, value)
    result = client.attend(query, key, value, weights="per_head")
    assert np.abs(result.output - output).max() < 1e-5 and np.abs(result.weights - weights).max() < 1e-5
    averaged = client.attend(query, key, value, weights="averaged")
    assert np.abs(averaged.weights - weights.mean(1)).max() < 1e-5
    half = client.attend(*(array.astype(ml_dtypes.bfloat16) for array in (query, key, value)), dtype="float16")
    assert half.output.dtype == np.float16 and np.abs(half.output - output).max() < 0.05
    masked = client.attend(query, key, value, mask=np.tri(4, 6, dtype=bool), kind="flash")
    assert np.abs(masked.output[:, :, 0] - value[:, :, 0]).max() < 1e-6


def test_attend_to_sequences_of_different_lengths(client):
    generator = np.random.default_rng(2)
    queries = [generator.normal(size=(length, 3, 8)).astype(np.float32) for length in (2, 5)]
    keys = [generator.normal(size=(length, 3, 8)).astype(np.float32) for length in (4, 1)]
    result = client.attend(queries, keys, weights="per_head")
    for i in range(2):
        weights, output = softmax_attention(*(array[i].swapaxes(0, 1) for array in (queries, keys, keys)))
        assert np.abs(result.weights[i] - weights).max() < 1e-5
        assert np.abs(result.output[i] - output.swapaxes(0, 1)).max() < 1e-5
    flat = client.attend([query[:, 0] for query in queries], weights="per_head")
    assert [weights.shape for weights in flat.weights] == [(2, 2), (5, 5)]


def test_ragged_linformer_has_weights_of_projected_keys(client):
    generator = np.random.default_rng(4)
    queries = [generator.normal(size=(length, 3, 8)).astype(np.float32) for length in (4, 4)]
    keys = [generator.normal(size=(length, 3, 8)).astype(np.float32) for length in (1, 5)]
    projection = generator.normal(size=(3, 5)).astype(np.float32)  # as many weights as of keys that are not projected
    for take, shape in ((slice(None), (3, 4, 3)), (0, (4, 3))):
        result = client.attend([query[:, take] for query in queries], [key[:, take] for key in keys], kind="linformer",
                               key_projection=projection, weights="per_head")
        for i in range(2):
            query, key = (array[i][:, take].reshape(len(array[i]), -1, 8).swapaxes(0, 1) for array in (queries, keys))
            projected = projection[:, :key.shape[1]] @ key
            expected, _ = softmax_attention(query, projected, projected)
            assert result.weights[i].shape == shape
            assert np.abs(result.weights[i] - expected.reshape(shape)).max() < 1e-5


def test_kinds_of_attention(client):
    tokens = np.random.default_rng(3).normal(size=(1, 9, 8)).astype(np.float32)
    parameters = {
        "multi_head": {"heads": 2, **{f"{part}_weight": np.eye(8) for part in ("query", "key", "value", "output")}},
        "additive": {"query_weight": np.ones((3, 8)), "key_weight": np.ones((3, 8)), "score_weight": np.ones(3)},
        "luong_general": {"weight": np.eye(8)},
        "luong_concat": {"weight": np.ones((3, 16)), "score_weight": np.ones(3)},
        "local": {"window": 1}, "strided": {"block": 3}, "linear": {"feature_map": "relu"},
        "linformer": {"key_projection": np.ones((4, 9))}}
    offered = [kind.name for kind in client.attention_kinds()]
    assert set(parameters) < set(offered)
    outputs = {kind: client.attend(tokens, kind=kind, **parameters.get(kind, {})).output for kind in offered}
    assert all(output.shape == tokens.shape for output in outputs.values())
    assert np.abs(outputs["flash"] - softmax_attention(tokens, tokens, tokens)[1]).max() < 1e-5
    assert np.abs(outputs["local"] - outputs["flash"]).max() > 0.01
    for positions in (attendant.Sinusoidal(to_value=True), attendant.Learned(np.ones((9, 8)), to_value=True),
                      attendant.Rotary(), attendant.Alibi()):
        assert np.abs(client.attend(tokens, positions=positions).output - outputs["flash"]).max() > 0.001


def test_attention_maps_are_pictures(client, tmp_path):
    maps = client.attention_maps("<b>The cat & \u202ethe mat.", layers=[2, 4], heads=[3, 1])
    assert maps.weights.shape[:2] == (2, 2) and maps.tokens[0] == "[CLS]" and maps.weights.shape[2] == len(maps.tokens)
    assert np.allclose(maps.of(2, 1).sum(-1), 1, atol=1e-5) and np.array_equal(maps.of(), maps.weights[1].mean(0))
    with pytest.raises(ValueError, match=r"layer is 3: the maps have \[2, 4\]"):
        maps.svg(layer=3)
    pictures = xml.etree.ElementTree.fromstring(maps._repr_html_())  # pylint: disable=protected-access
    assert len(pictures) == 2 and "layer 4, head 3" in "".join(pictures[0].itertext())
    assert "[CLS]" in repr(maps) and "array" not in repr(maps)
    assert "\u202e" not in maps.svg() and "<b>" not in maps.svg()
    maps.save(tmp_path / "map.svg", layer=2)
    xml.etree.ElementTree.parse(tmp_path / "map.svg")
    assert client.attention_maps(IDS).weights.shape == (6, 12, 8, 8)


def test_streams(client, sentences):
    texts, _, expected = sentences
    rows = np.array(list(client.stream(operations.embed(text) for text in texts)))
    assert np.abs(rows - expected).max() <= 1e-5
    bad = [operations.embed("good"), operations.embed("bad", model="nobody"), operations.encode(["good"])]
    first, second, third = client.stream_outcomes(bad, ordered=True)
    assert isinstance(second.error, LookupError)
    assert np.allclose(first.value, client.embed("good")) and third.value.lengths == [3]
    queries = [np.full((1, i + 1, 4), i, np.float32) for i in range(20)]
    outputs = client.stream(operations.attend(query) for query in queries)
    assert all(np.allclose(result.output, query, rtol=1e-6) for result, query in zip(outputs, queries))


def test_async_client(server, sentences):
    texts, _, expected = sentences

    async def run():
        async with attendant.AsyncClient(server.grpc, model="minilm") as client:
            rows = await client.embed(texts, batch_size=2)
            streamed = [row async for row in client.stream(operations.embed(text) for text in texts)]
            with pytest.raises(attendant.NotFoundError):
                await client.with_options(model="nobody").embed(texts)
            return rows, np.array(streamed)

    rows, streamed = asyncio.run(run())
    assert np.abs(rows - expected).max() <= 1e-5 and np.array_equal(rows, streamed)


def test_a_sentence_encoder_is_like_a_sentence_transformer(client, sentences):
    texts, _, expected = sentences
    encoder = attendant.SentenceEncoder(client)
    rows = encoder.encode(texts, batch_size=2, show_progress_bar=True, normalize_embeddings=True)
    assert np.abs(rows - expected).max() <= 1e-5 and rows.flags.writeable
    assert np.array_equal(encoder.encode(texts[0]), rows[0])
    assert encoder.encode(texts[:1], truncate_dim=32).shape == (1, 32)
    assert [row.shape for row in encoder.encode([TEXT, "Short."], output_value="token_embeddings")] == [(8, 384), (4, 384)]
    assert np.array_equal(encoder.encode("b", prompt="a "), encoder.encode("a b"))
    assert encoder.get_sentence_embedding_dimension() == 384
    assert np.array_equal(encoder.encode_query(texts), rows) and np.array_equal(encoder.encode_document(texts), rows)
    assert np.allclose(np.diag(encoder.similarity(rows, rows)), 1, atol=1e-5)


def test_langchain(client, sentences):
    from langchain_core.embeddings import Embeddings  # pylint: disable=import-outside-toplevel
    from attendant.langchain import AttendantEmbeddings  # pylint: disable=import-outside-toplevel
    texts, _, expected = sentences
    embeddings = AttendantEmbeddings(client)
    assert isinstance(embeddings, Embeddings)
    assert np.abs(np.array(embeddings.embed_documents(texts)) - expected).max() <= 1e-5
    assert np.array_equal(asyncio.run(embeddings.aembed_query(texts[0])), embeddings.embed_query(texts[0]))
    assert embeddings.embed_documents([]) == []
