# SPDX-License-Identifier: Apache-2.0
"""The Python client's methods for heads on tokens, prompts and small embeddings, against golden numbers."""

import asyncio
import json

import numpy as np
import pytest
import tokenizers

import attendant
from attendant import operations
from harness import settings
from harness.server import serving

TOKENS = settings.ROOT / "tests" / "golden" / "tokens"
PROMPTS = settings.ROOT / "tests" / "golden" / "sentence" / "prompts"
LABELS = ("O", "B-PER", "I-PER", "B-LOC")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    models = {name: TOKENS / name for name in ("bert_splade", "bert_tokens", "bge_m3")} | {"prompts": PROMPTS}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as server:
        yield server


@pytest.fixture
def heads_on_tokens(running):
    """heads_on_tokens(model): a client whose calls name that model."""
    with attendant.Client(running.grpc) as connected:
        yield lambda model: connected.with_options(model=model)


def golden(folder):
    cases = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return [case["text"] for case in cases], cases


def close(found, expected):
    return np.abs(np.asarray(found) - expected).max() <= 2e-5 * np.linalg.norm(expected)


def softmax(rows):
    exponentials = np.exp(rows - np.max(rows, -1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def test_sparse_vectors(heads_on_tokens):
    texts, cases = golden(TOKENS / "bert_splade")
    client = heads_on_tokens("bert_splade")
    found = client.sparse(texts, batch_size=2, tokens=True)
    for vector, case in zip(found, cases, strict=True):
        dense = np.zeros(len(case["sparse"]))
        dense[vector.ids] = vector.weights
        assert close(dense, np.array(case["sparse"])) and len(vector.tokens) == len(vector) == len(vector.ids)
    expected = np.dot(cases[0]["sparse"], cases[1]["sparse"])
    assert found[0].dot(found[1]) == pytest.approx(expected, rel=1e-4)
    largest, = client.sparse(texts[0], top_k=3)
    assert largest.tokens is None and set(largest.ids) == set(found[0].ids[np.argsort(-found[0].weights)[:3]])
    streamed = list(client.stream(operations.sparse(text) for text in texts))
    assert [vector.ids.tolist() for [vector] in streamed] == [vector.ids.tolist() for vector in found]


def test_fill_mask(heads_on_tokens):
    texts, cases = golden(TOKENS / "bert_splade")
    client = heads_on_tokens("bert_splade")
    found = client.fill_mask(texts, top_k=3, batch_size=2)
    assert [[mask.position for mask in masks] for masks in found] == [case["masks"] for case in cases]
    for masks, case in zip(found, cases):
        for mask, row in zip(masks, case["logits"], strict=True):
            best = np.argsort(-np.array(row), kind="stable")[:3]
            assert [each.token_id for each in mask.predictions] == best.tolist()
            assert close([each.score for each in mask.predictions], softmax(np.array(row))[best])
            assert all(each.token for each in mask.predictions)
    raw = client.fill_mask(texts[1], top_k=1, raw=True)[0][0].predictions[0].score
    assert raw == pytest.approx(max(cases[1]["logits"][0]), rel=1e-3)
    assert client.fill_mask("no mask") == [[]]


def test_classify_tokens(heads_on_tokens):
    texts, cases = golden(TOKENS / "bert_tokens")
    client = heads_on_tokens("bert_tokens")
    found = client.classify_tokens(texts, batch_size=2)
    for labelled, case in zip(found, cases, strict=True):
        assert labelled.labels == LABELS and len(labelled) == len(labelled.tokens) == len(case["ids"])
        assert close(labelled.scores, softmax(np.array(case["logits"])))
    best = found[0][0]
    assert found[0].tokens[0] == "[CLS]" and best[0].label == LABELS[np.argmax(cases[0]["logits"][0])]
    assert [label.score for label in best] == sorted(found[0].scores[0].tolist(), reverse=True)
    raw, = client.classify_tokens(texts[0], labels=["a", "b", "c", "d"], raw=True)
    assert raw.labels == ("a", "b", "c", "d") and close(raw.scores, np.array(cases[0]["logits"]))
    with pytest.raises(attendant.InternalError, match="4 scores"):
        client.classify_tokens(texts[0], labels=["a"])
    padded = client.classify_tokens(attendant.PaddedBatch([[2, 7, 3], [2, 3, 0]], [[1, 1, 1], [1, 1, 0]]))
    assert [labelled.scores.shape for labelled in padded] == [(3, 4), (3, 4)] and not padded[1].scores[2].any()


def by_attention(tokens, row):
    """The words of a WordPiece text and the sums of what its first token attends to them."""
    words, sums = [], []
    for token, weight in zip(tokens[1:-1], row[1:-1], strict=True):
        if token.startswith("##") and words:
            words[-1] += token[2:]
            sums[-1] += weight
        else:
            words.append(token)
            sums.append(weight)
    return words, sums


def test_word_weights(heads_on_tokens, running):
    texts = ["the quick brown fox", "the lazy dog"]
    client = heads_on_tokens("bert_tokens")
    found = client.word_weights(texts, batch_size=1)
    maps = client.encode(texts, tokens=True, attention=True)
    for weighed, tokens, attention in zip(found, maps.tokens, maps.attention, strict=True):
        words, sums = by_attention(tokens, attention[-1].mean(0)[0])
        assert weighed.words == words and len(weighed) == len(words)
        assert np.allclose(weighed.weights, sums, atol=1e-6)
        assert list(weighed) == list(zip(words, weighed.weights.tolist()))

    async def weigh():
        async with attendant.AsyncClient(running.grpc, model="bert_tokens") as asynchronous:
            return await asynchronous.word_weights(texts[0])

    assert list(asyncio.run(weigh())[0]) == list(found[0])
    [streamed] = client.stream([operations.word_weights(texts[1])])
    assert list(streamed[0]) == list(found[1])


def test_offsets_of_tokens(heads_on_tokens):
    text = "the quick brown fox"
    client = heads_on_tokens("bert_tokens")
    result = client.encode([text, attendant.TokenIds([2, 7, 3])], token_offsets=True)
    encoding = tokenizers.Tokenizer.from_file(str(TOKENS / "bert_tokens" / "tokenizer.json")).encode(text)
    assert result.token_offsets[0].tolist() == [list(pair) for pair in encoding.offsets]
    assert result.token_offsets[0].dtype == np.int32 and result.token_offsets[1] is None
    assert client.encode(text).token_offsets is None


def test_rerank_by_vectors_of_tokens(heads_on_tokens):
    client = heads_on_tokens("bge_m3")
    passages = ["the lazy dog", "prices fell", "the quick brown fox"]
    query, *others = client.multi_vectors(["a quick fox", *passages])
    wanted = [(query @ other.T).max(1).sum() for other in others]
    found = client.rerank("a quick fox", passages, batch_size=2)
    assert [ranked.index for ranked in found] == np.argsort(-np.array(wanted)).tolist()
    assert np.allclose([ranked.score for ranked in found], sorted(wanted, reverse=True), rtol=1e-5)


def test_three_kinds_of_vectors_in_one_request(heads_on_tokens):
    texts, cases = golden(TOKENS / "bge_m3")
    client = heads_on_tokens("bge_m3")
    result = client.encode(texts, last_hidden_state=False, pooled=True, sparse=True, multi_vectors=True)
    assert close(result.pooled, np.array([case["dense"] for case in cases]))
    for case, weights, vectors in zip(cases, result.sparse, result.multi_vectors, strict=True):
        assert weights.ids.tolist() == [token for token, _ in case["weights"]]
        assert np.allclose(weights.weights, [weight for _, weight in case["weights"]], atol=2e-5)
        assert close(vectors, np.array(case["vectors"]))
    alone = client.multi_vectors(texts, batch_size=2)
    assert all(np.array_equal(one, other) for one, other in zip(alone, result.multi_vectors, strict=True))
    assert result.last_hidden_state is None and client.encode(texts[:1]).sparse is None


def test_prompts(heads_on_tokens, running):
    client = heads_on_tokens("prompts")
    model, = [model for model in client.models() if model.name == "prompts"]
    assert model.prompt_names == ("document", "long", "query") and model.default_prompt_name == "query"
    cases = json.loads((PROMPTS / "expected.json").read_text(encoding="utf-8"))
    assert len({case["prompt_name"] for case in cases}) > 1
    for case in cases:
        assert close(client.embed(case["texts"], prompt_name=case["prompt_name"]), np.array(case["embeddings"]))
    text = cases[0]["texts"][0]
    plain = client.embed(text, prompt_name="")
    assert not np.array_equal(plain, client.embed(text))
    with pytest.raises(attendant.InvalidArgumentError, match="nothing"):
        client.embed(text, prompt_name="nothing")
    encoder = attendant.SentenceEncoder(client)
    assert np.array_equal(encoder.encode(text, prompt_name="query"), client.embed(text, prompt_name="query"))
    assert np.array_equal(encoder.encode(text, prompt=""), plain)
    assert np.array_equal(encoder.encode(text, "document"), client.embed(text, prompt_name="document"))
    assert np.array_equal(encoder.encode_query(text), client.embed(text, prompt_name="query"))
    assert np.array_equal(encoder.encode_document(text), client.embed(text, prompt_name="document"))
    assert np.array_equal(encoder.encode_document(text, prompt_name=""), plain)
    assert np.array_equal(encoder.encode_query(text, prompt=""), plain)
    assert encoder.get_sentence_embedding_dimension() == len(plain)
    from attendant.langchain import AttendantEmbeddings  # pylint: disable=import-outside-toplevel
    embeddings = AttendantEmbeddings(running.grpc, "prompts", query_prompt_name="query", prompt_name="document")
    assert embeddings.embed_query(text) == client.embed(text, prompt_name="query").tolist()
    assert embeddings.embed_documents([text])[0] == client.embed(text, prompt_name="document").tolist()


def test_small_embeddings(client):
    texts = ["A man is eating pasta.", "Prices fell."]
    exact = client.embed(texts)
    assert client.embed(texts, dtype="ubinary").tolist() == np.packbits(exact > 0, axis=1).tolist()
    binary = client.embed(texts, dtype="binary", batch_size=1)
    assert binary.dtype == np.int8 and np.array_equal(binary.astype(int) + 128, np.packbits(exact > 0, axis=1))
    small = client.embed(texts, dtype="int8")
    result = client.encode(texts, last_hidden_state=False, pooled=True, pooled_dtype="int8")
    assert small.dtype == np.int8 and np.array_equal(small, result.pooled)
    assert np.abs(small * result.pooled_scales[:, None] - exact).max() <= result.pooled_scales.max() / 2 + 1e-7
    assert client.encode(texts, pooled=True).pooled_scales is None
    assert attendant.SentenceEncoder(client).encode(texts, precision="ubinary").shape == (2, 48)


def test_models_without_heads_say_so(client):
    for call in (client.sparse, client.fill_mask, client.multi_vectors, client.classify_tokens):
        with pytest.raises(attendant.InvalidArgumentError, match="has no head"):
            call("a")


def test_the_same_awaited(running):
    async def run():
        async with attendant.AsyncClient(running.grpc) as client:
            return await asyncio.gather(
                client.sparse("never again", model="bert_splade"), client.fill_mask("a [MASK]", model="bert_splade"),
                client.classify_tokens("never again", model="bert_tokens"), client.multi_vectors("never", model="bge_m3"),
                client.embed("never", model="prompts", prompt_name="document", dtype="int8"))

    sparse, masks, labels, vectors, small = asyncio.run(run())
    with attendant.Client(running.grpc) as client:
        assert np.array_equal(sparse[0].weights, client.sparse("never again", model="bert_splade")[0].weights)
        assert masks == client.fill_mask("a [MASK]", model="bert_splade")
        assert np.array_equal(labels[0].scores, client.classify_tokens("never again", model="bert_tokens")[0].scores)
        assert np.array_equal(vectors[0], client.multi_vectors("never", model="bge_m3")[0])
        assert np.array_equal(small, client.embed("never", model="prompts", prompt_name="document", dtype="int8"))
