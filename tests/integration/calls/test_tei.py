# SPDX-License-Identifier: Apache-2.0
"""tei.v1 over gRPC, against the HTTP doors of the same protocol and against transformers."""

import json

import grpc
import numpy as np
import pytest
import tokenizers

from harness import attendant, settings
from harness.attendant import DEADLINE
from harness.server import serving

tei, stubs = attendant.compiled("tei/v1", "tei")
GOLDEN = settings.ROOT / "tests" / "golden" / "classifier"
TINY = settings.GOLDEN / "tiny_mpnet"
SPLADE = settings.ROOT / "tests" / "golden" / "tokens" / "bert_splade"
TEXTS = ["A man eats pasta.", "Someone has lunch.", "Shares fell on Tuesday.", "猫"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: GOLDEN / name for name in ("bert_reranker", "roberta_classifier", "electra_cross_encoder")}
    with serving(tmp_path_factory.mktemp("server"), models | {"tiny": TINY, "splade": SPLADE}, "--dtype=f32") as running:
        yield running


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(server.grpc) as connected:
        yield connected


def of(model):
    return {"metadata": (("x-model", model),), "timeout": DEADLINE}


def golden(name):
    return json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))


def predictions(answer):
    return {prediction.label: prediction.score for prediction in answer.predictions}


def test_embeddings_are_those_of_http(server, channel):
    embed = stubs.EmbedStub(channel)
    found = [embed.Embed(tei.EmbedRequest(inputs=text), **of("tiny")).embeddings for text in TEXTS]
    np.testing.assert_array_equal(np.float32(found), np.float32(server.post_json("/embed", {"inputs": TEXTS}, "tiny")))


@pytest.mark.parametrize("model, path, body", [
    ("tiny", "/embed", {"inputs": TEXTS, "truncate": True}),
    ("splade", "/embed_sparse", {"inputs": TEXTS, "truncate": True}),
    ("roberta_classifier", "/predict", {"inputs": [["a"], ["b", "c"]]}),
    ("bert_reranker", "/rerank", {"query": "how tall is it?", "texts": TEXTS[:3]}),
    ("bert_reranker", "/predict", {"inputs": ["how tall is it?", "it rains"]}),
])
def test_the_root_answers_as_the_models_kind_does(server, model, path, body):
    assert server.post_json("/", body, model) == server.post_json(path, body, model)


def test_a_stream_of_embeddings_is_in_order(channel):
    embed = stubs.EmbedStub(channel)
    requests = [tei.EmbedRequest(inputs=text * (1 + i % 3), truncate=True) for i, text in enumerate(TEXTS * 16)]
    streamed = [answer.embeddings for answer in embed.EmbedStream(iter(requests), **of("tiny"))]
    assert streamed == [embed.Embed(request, **of("tiny")).embeddings for request in requests]


def test_token_embeddings_are_those_of_http(server, channel):
    answer = stubs.EmbedStub(channel).EmbedAll(tei.EmbedAllRequest(inputs=TEXTS[0]), **of("tiny"))
    found = [token.embeddings for token in answer.token_embeddings]
    expected = server.post_json("/embed_all", {"inputs": TEXTS[0]}, "tiny")[0]
    np.testing.assert_array_equal(np.float32(found), np.float32(expected))
    assert answer.metadata.compute_tokens == len(found)


def test_sparse_embeddings_are_those_of_http(server, channel):
    embed = stubs.EmbedStub(channel)
    requests = [tei.EmbedSparseRequest(inputs=text, truncate=True) for text in TEXTS]
    found = [[(value.index, np.float32(value.value)) for value in answer.sparse_embeddings]
             for answer in embed.EmbedSparseStream(iter(requests), **of("splade"))]
    expected = server.post_json("/embed_sparse", {"inputs": TEXTS, "truncate": True}, "splade")
    assert found == [[(entry["index"], np.float32(entry["value"])) for entry in entries] for entries in expected]
    assert all(found)
    with pytest.raises(grpc.RpcError) as error:
        embed.EmbedSparse(requests[0], **of("tiny"))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def offset(token):
    return (token.start if token.HasField("start") else None, token.stop if token.HasField("stop") else None)


def offsets_in_bytes(encoding, text):
    def byte(character):
        return len(text[:character].encode())

    return [(None, None) if special else (byte(begin), byte(end))
            for (begin, end), special in zip(encoding.offsets, encoding.special_tokens_mask)]


@pytest.mark.parametrize("special", [False, True])
def test_tokens_are_those_of_http_and_decode_to_what_the_library_says(server, channel, special):
    tokenize = stubs.TokenizeStub(channel)
    library = tokenizers.Tokenizer.from_file(str(TINY / "tokenizer.json"))
    requests = [tei.EncodeRequest(inputs=text, add_special_tokens=special) for text in TEXTS]
    lists = [answer.tokens for answer in tokenize.TokenizeStream(iter(requests), **of("tiny"))]
    expected = server.post_json("/tokenize", {"inputs": TEXTS, "add_special_tokens": special}, "tiny")
    assert [[(token.id, token.text, token.special, offset(token)) for token in tokens] for tokens in lists] == \
        [[(token["id"], token["text"], token["special"], (token["start"], token["stop"])) for token in tokens]
         for tokens in expected]
    for text, tokens in zip(TEXTS, lists):
        ids = [token.id for token in tokens]
        assert [offset(token) for token in tokens] == offsets_in_bytes(library.encode(text, add_special_tokens=special), text)
        assert ids == library.encode(text, add_special_tokens=special).ids
        for skip in (False, True):
            decoded = tokenize.Decode(tei.DecodeRequest(ids=ids, skip_special_tokens=skip), **of("tiny")).text
            assert decoded == library.decode(ids, skip_special_tokens=skip)
            assert server.post_json("/decode", {"ids": ids, "skip_special_tokens": skip}, "tiny") == [decoded]


def test_lists_of_ids_that_are_none_are_refused(channel):
    tokenize = stubs.TokenizeStub(channel)
    for ids, message in (([], "ids is empty"), ([2**32 - 1], "is no token id")):
        with pytest.raises(grpc.RpcError) as error:
            tokenize.Decode(tei.DecodeRequest(ids=ids), **of("tiny"))
        assert (error.value.code(), message in error.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, True)


@pytest.mark.parametrize("stream", [False, True])
def test_predictions_are_those_of_transformers(channel, stream):
    predict = stubs.PredictStub(channel)
    for case in golden("roberta_classifier"):
        texts = case["texts"]
        if texts == [""]:
            continue  # TEI refuses it
        for raw, values in ((False, case["scores"]), (True, case["logits"])):
            pair = len(texts) == 2
            request = tei.PredictPairRequest(inputs=texts, raw_scores=raw, truncate=True) if pair else \
                tei.PredictRequest(inputs=texts[0], raw_scores=raw, truncate=True)
            name = ("PredictPair" if pair else "Predict") + ("Stream" if stream else "")
            method = getattr(predict, name)
            answer = next(method(iter([request]), **of("roberta_classifier"))) if stream else \
                method(request, **of("roberta_classifier"))
            found = predictions(answer)
            np.testing.assert_allclose([found[label] for label in ("bad", "fair", "good")], values, atol=2e-5)
            scores = [prediction.score for prediction in answer.predictions]
            assert scores == sorted(scores, reverse=True)


def rerank_requests(query, texts, **options):
    for i, text in enumerate(texts):
        yield tei.RerankStreamRequest(query=query if i == 0 else "", text=text, **(options if i == 0 else {}))


@pytest.mark.parametrize("raw", [False, True])
def test_ranks_are_those_of_http_unary_and_as_a_stream(server, channel, raw):
    rerank = stubs.RerankStub(channel)
    query, texts = "who eats?", TEXTS * 3
    answer = rerank.Rerank(tei.RerankRequest(query=query, texts=texts, raw_scores=raw, return_text=True),
                           **of("bert_reranker"))
    expected = server.post_json("/rerank", {"query": query, "texts": texts, "raw_scores": raw, "return_text": True},
                                "bert_reranker")
    assert [(rank.index, rank.text, np.float32(rank.score)) for rank in answer.ranks] == \
        [(rank["index"], rank["text"], np.float32(rank["score"])) for rank in expected]
    streamed = rerank.RerankStream(rerank_requests(query, texts, raw_scores=raw, return_text=True),
                                   **of("bert_reranker"))
    assert streamed.ranks == answer.ranks


def test_a_stream_of_texts_that_is_wrong_ends_with_what_is_wrong(channel):
    rerank = stubs.RerankStub(channel)
    for requests, code, message in (
            ([], grpc.StatusCode.INVALID_ARGUMENT, "query is empty"),
            (rerank_requests("q", ["text"] * 5000), grpc.StatusCode.INVALID_ARGUMENT, "more than 4096 texts")):
        with pytest.raises(grpc.RpcError) as error:
            rerank.RerankStream(iter(requests), **of("bert_reranker"))
        assert (error.value.code(), message in error.value.details()) == (code, True)


def test_a_model_that_cannot_do_it_fails_the_precondition(channel):
    calls = ((stubs.RerankStub(channel).Rerank, tei.RerankRequest(query="q", texts=["t"]), "roberta_classifier"),
             (stubs.RerankStub(channel).Rerank, tei.RerankRequest(query="q", texts=["t"]), "tiny"),
             (stubs.PredictStub(channel).Predict, tei.PredictRequest(inputs="t"), "tiny"))
    for method, request, model in calls:
        with pytest.raises(grpc.RpcError) as error:
            method(request, **of(model))
        assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION


def test_truncation_is_as_the_request_says(channel):
    embed = stubs.EmbedStub(channel)
    long = "pasta " * 2000
    with pytest.raises(grpc.RpcError) as error:
        embed.Embed(tei.EmbedRequest(inputs=long), **of("tiny"))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert len(embed.Embed(tei.EmbedRequest(inputs=long, truncate=True), **of("tiny")).embeddings) > 0


def test_info_tells_the_kind_of_model(channel):
    info = stubs.InfoStub(channel)
    kinds = {name: info.Info(tei.InfoRequest(), **of(name)).model_type
             for name in ("tiny", "roberta_classifier", "bert_reranker")}
    assert kinds == {"tiny": tei.MODEL_TYPE_EMBEDDING, "roberta_classifier": tei.MODEL_TYPE_CLASSIFIER,
                     "bert_reranker": tei.MODEL_TYPE_RERANKER}
