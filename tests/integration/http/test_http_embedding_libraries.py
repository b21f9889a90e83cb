# SPDX-License-Identifier: Apache-2.0
"""Libraries that applications build on, unchanged: LangChain, LlamaIndex and huggingface_hub; answers are those of gRPC."""

import asyncio

import numpy as np
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from langchain_openai import OpenAIEmbeddings
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference
from llama_index.postprocessor.nvidia_rerank import NVIDIARerank
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

from harness import attendant, settings
from harness.attendant import pb
from harness.server import serving

TEXTS = ["A man is eating pasta.", "Someone has lunch.", "Ünïcode — 漢字 🙂"]
LONG = "pasta " * 1000
CLASSIFIER = "roberta_classifier"
RERANKER = "bert_reranker"


@pytest.fixture(scope="module")
def expected(server):
    """[texts, hidden]"""
    with attendant.Client(server.grpc) as client:
        return client.pooled("minilm", attendant.texts(*TEXTS))


def serving_alone(tmp_path_factory, name, folder):
    """Clients of text-embeddings-inference name no model."""
    return serving(tmp_path_factory.mktemp("server"), {name: folder}, "--dtype=f32")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = settings.ROOT / "tests" / "golden" / "classifier" / CLASSIFIER
    with serving_alone(tmp_path_factory, CLASSIFIER, folder) as running:
        yield running


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    folder = settings.ROOT / "tests" / "golden" / "classifier" / RERANKER
    with serving_alone(tmp_path_factory, RERANKER, folder) as running:
        yield running


def same(rows, expected):
    return np.array_equal(np.array(rows, dtype=np.float32), expected)


def test_langchain_openai(server, expected):
    embeddings = OpenAIEmbeddings(model="minilm", base_url=f"http://{server.http}/v1", api_key="none",
                                  check_embedding_ctx_length=False)
    assert same(embeddings.embed_documents(TEXTS), expected)
    assert same(embeddings.embed_query(TEXTS[0]), expected[0])
    assert same(asyncio.run(embeddings.aembed_documents(TEXTS)), expected)


def test_llama_index(server, expected):
    embedding = OpenAIEmbedding(model_name="minilm", api_base=f"http://{server.http}/v1", api_key="none",
                                embed_batch_size=2)
    assert same(embedding.get_text_embedding_batch(TEXTS), expected)
    assert same(embedding.get_query_embedding(TEXTS[0]), expected[0])
    assert same(asyncio.run(embedding.aget_text_embedding_batch(TEXTS)), expected)


def test_llama_index_text_embeddings_inference(tmp_path_factory, expected):
    with serving_alone(tmp_path_factory, "minilm", settings.model_dir()) as alone:
        embedding = TextEmbeddingsInference(model_name="any", base_url=f"http://{alone.http}", embed_batch_size=2)
        assert same(embedding.get_text_embedding_batch(TEXTS), expected)
        assert same(asyncio.run(embedding.aget_text_embedding_batch(TEXTS)), expected)
        assert len(embedding.get_text_embedding(LONG)) == expected.shape[1]


def ranked(reranker, server):
    """(text, score) of the two best documents as a postprocessor of LlamaIndex ranks them, and as the server does."""
    query, documents = "who eats?", [*TEXTS, LONG]
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.0) for text in documents]
    found = [(node.text, node.score) for node in reranker.postprocess_nodes(nodes, query_str=query)]
    body = {"model": RERANKER, "query": query, "documents": documents, "top_n": 2}
    results = server.post_json("/v1/rerank", body)["results"]
    return found, [(result["document"]["text"], result["relevance_score"]) for result in results]


def test_llama_index_tei_rerank(reranker):
    """It does not say that long texts may be cut."""
    found, expected = ranked(TextEmbeddingInference(base_url=f"http://{reranker.http}", top_n=2), reranker)
    assert found == expected


def test_llama_index_nvidia_rerank(reranker):
    client = NVIDIARerank(model=RERANKER, base_url=f"http://{reranker.http}/v1", api_key="none", top_n=2, truncate="END")
    found, expected = ranked(client, reranker)
    assert [text for text, _ in found] == [text for text, _ in expected]
    logits = np.array([score for _, score in found])
    assert np.abs(1 / (1 + np.exp(-logits)) - [score for _, score in expected]).max() <= 1e-6


def hugging_face(server, path, model):
    return InferenceClient(model=f"http://{server.http}{path}", headers={"x-model": model}, token="none")


def test_huggingface_feature_extraction(server, expected):
    client = hugging_face(server, "/embed", "minilm")
    assert same(client.feature_extraction(TEXTS[0]), expected[:1])
    cut = client.feature_extraction(TEXTS[0], normalize=True, truncate=True, truncation_direction="right", dimensions=64)
    assert np.abs(cut[0] - expected[0, :64] / np.linalg.norm(expected[0, :64])).max() <= 1e-6
    with pytest.raises(HfHubHTTPError, match="there is no model 'nobody'") as caught:
        hugging_face(server, "/embed", "nobody").feature_extraction("x")
    assert caught.value.response.status_code == 404


def test_huggingface_sentence_similarity(server, expected):
    found = hugging_face(server, "/similarity", "minilm").sentence_similarity(TEXTS[0], TEXTS[1:])
    assert np.abs(np.array(found) - expected[1:] @ expected[0]).max() <= 1e-6


def test_huggingface_text_classification(classifier):
    """Of the labels of a text-embeddings-inference server, the client returns the best one only."""
    with attendant.Client(classifier.grpc) as client:
        message = attendant.request(CLASSIFIER, attendant.texts(TEXTS[0]), scores=pb.ScoreOutput())
        scores = attendant.array(client.encode(message).scores)[0]
    for path in ("/predict", ""):
        found = hugging_face(classifier, path, CLASSIFIER).text_classification(TEXTS[0])
        assert found.label == ["bad", "fair", "good"][scores.argmax()] and np.float32(found.score) == scores.max()


def test_huggingface_at_the_servers_address(server, expected):
    client = hugging_face(server, "", "minilm")
    assert same(client.feature_extraction(TEXTS[0]), expected[:1])
    found = client.sentence_similarity(TEXTS[0], TEXTS[1:])
    assert np.abs(np.array(found) - expected[1:] @ expected[0]).max() <= 1e-6
    with pytest.raises(HfHubHTTPError, match="inputs"):
        client.feature_extraction(3)
