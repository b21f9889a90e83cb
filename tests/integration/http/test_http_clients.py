# SPDX-License-Identifier: Apache-2.0
"""Clients that people already use, as they use them, over HTTP; each answer is that of gRPC."""

import json

import cohere
import numpy as np
import openai
import openapi_spec_validator
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton

from harness.perf_analyzer import IDS_FILE, TEXTS_FILE, measure

EMBEDDING = "sentence_embedding"
TEXTS = ["A man is eating pasta.", "Someone has lunch.", "Prices fell.", "Ünïcode — 漢字 🙂", ""]


@pytest.fixture(scope="module")
def expected(server):
    """What gRPC answers for TEXTS: [texts, hidden]."""
    with triton_grpc.InferenceServerClient(server.grpc) as client:
        text = triton_grpc.InferInput("text", [len(TEXTS), 1], "BYTES")
        text.set_data_from_numpy(np.array([[t] for t in TEXTS], dtype=object))
        return client.infer("minilm", [text]).as_numpy(EMBEDDING)


@pytest.fixture(scope="module")
def openai_client(server):
    with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def triton_client(server):
    with triton.InferenceServerClient(server.http) as client:
        yield client


def rows(answer):
    return np.array([entry.embedding for entry in answer.data], dtype=np.float32)


def test_openai_has_the_bits_of_grpc(openai_client, expected):
    """The client asks for base64 unless told otherwise."""
    answer = openai_client.embeddings.create(model="minilm", input=TEXTS)
    assert np.array_equal(rows(answer), expected)
    assert answer.model == "minilm" and answer.usage.prompt_tokens == answer.usage.total_tokens > len(TEXTS)
    floats = openai_client.embeddings.create(model="minilm", input=TEXTS, encoding_format="float")
    assert np.array_equal(rows(floats), expected)


def test_openai_token_ids_and_dimensions(openai_client, expected):
    ids = [101, 1037, 2158, 2003, 5983, 24857, 1012, 102]  # "A man is eating pasta."
    assert np.array_equal(rows(openai_client.embeddings.create(model="minilm", input=ids))[0], expected[0])
    both = openai_client.embeddings.create(model="minilm", input=[ids, ids])
    assert np.array_equal(rows(both), expected[[0, 0]])
    cut = rows(openai_client.embeddings.create(model="minilm", input=TEXTS[0], dimensions=64))[0]
    assert np.abs(cut - expected[0, :64] / np.linalg.norm(expected[0, :64])).max() <= 1e-6


def test_openai_errors_are_its_exceptions(openai_client):
    with pytest.raises(openai.NotFoundError) as missing:
        openai_client.embeddings.create(model="nobody", input="x")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="limit is 256"):
        openai_client.embeddings.create(model="minilm", input="word " * 1000)
    with pytest.raises(openai.BadRequestError):
        openai_client.embeddings.create(model="minilm", input=[])


def test_openai_models(openai_client):
    assert {model.id for model in openai_client.models.list()} == {"minilm", "tiny"}
    assert openai_client.models.retrieve("minilm").id == "minilm"


def text_input(texts, binary):
    text = triton.InferInput("text", [len(texts), 1], "BYTES")
    text.set_data_from_numpy(np.array([[t] for t in texts], dtype=object), binary_data=binary)
    return text


def test_triton_health_and_metadata(triton_client):
    assert triton_client.is_server_live() and triton_client.is_server_ready()
    assert triton_client.is_model_ready("minilm") and triton_client.is_model_ready("minilm.ids", "1")
    assert not triton_client.is_model_ready("nobody") and not triton_client.is_model_ready("tiny")
    assert triton_client.get_server_metadata()["name"] == "attendant"
    assert triton_client.get_model_metadata("minilm")["outputs"][0]["shape"] == [-1, 384]
    assert triton_client.get_model_config("minilm")["max_batch_size"] > 0
    statistics = triton_client.get_inference_statistics("minilm")["model_stats"][0]
    assert statistics["name"] == "minilm" and "inference_stats" in statistics


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_triton_texts(triton_client, expected, binary_in, binary_out):
    outputs = [triton.InferRequestedOutput(EMBEDDING, binary_data=binary_out)]
    result = triton_client.infer("minilm", [text_input(TEXTS, binary_in)], outputs=outputs, request_id="mine")
    assert np.array_equal(result.as_numpy(EMBEDDING), expected)
    assert result.get_response()["id"] == "mine"


def test_triton_ids_states_and_compression(triton_client, expected):
    ids = np.array([[101, 1037, 2158, 2003, 5983, 24857, 1012, 102, 0, 0]], dtype=np.int64)
    inputs = []
    for name, values in (("input_ids", ids), ("attention_mask", (ids > 0).astype(np.int64))):
        inputs.append(triton.InferInput(name, list(values.shape), "INT64"))
        inputs[-1].set_data_from_numpy(values)
    options = {"request_compression_algorithm": "gzip", "response_compression_algorithm": "gzip"}
    assert np.array_equal(triton_client.infer("minilm.ids", inputs, **options).as_numpy(EMBEDDING)[0], expected[0])
    states = triton_client.infer("minilm.encoder", inputs).as_numpy("last_hidden_state")
    assert states.shape == (1, 10, 384) and not states[0, 8:].any()


def test_triton_concurrent_requests(server, expected):
    with triton.InferenceServerClient(server.http, concurrency=16) as client:
        calls = [client.async_infer("minilm", [text_input(TEXTS[i % len(TEXTS):][:1], True)]) for i in range(200)]
        for i, call in enumerate(calls):
            assert np.array_equal(call.get_result().as_numpy(EMBEDDING)[0], expected[i % len(TEXTS)])


def test_triton_errors(triton_client):
    with pytest.raises(triton.InferenceServerException, match="nobody"):
        triton_client.infer("nobody", [text_input(TEXTS, True)])
    with pytest.raises(triton.InferenceServerException, match="nobody"):
        triton_client.get_model_metadata("nobody")


def test_cohere(server, expected):
    client = cohere.ClientV2(api_key="none", base_url=f"http://{server.http}")
    answer = client.embed(model="minilm", texts=TEXTS, input_type="search_document",
                          embedding_types=["float", "ubinary"])
    assert np.array_equal(np.array(answer.embeddings.float_, dtype=np.float32), expected)
    assert np.array_equal(np.array(answer.embeddings.ubinary, dtype=np.uint8), np.packbits(expected > 0, axis=1))
    inputs = [{"content": [{"type": "text", "text": text}]} for text in TEXTS]
    answer = client.embed(model="minilm", inputs=inputs, input_type="search_document")
    assert np.array_equal(np.array(answer.embeddings.float_, dtype=np.float32), expected)
    with pytest.raises(cohere.NotFoundError):
        client.embed(model="nobody", texts=TEXTS, input_type="search_document")


def test_cohere_version_1(server, expected):
    """Floats alone, or by type as LangChain's CohereEmbeddings asks for them."""
    client = cohere.Client(api_key="none", base_url=f"http://{server.http}")
    floats = client.embed(model="minilm", texts=TEXTS, input_type="search_document").embeddings
    assert np.array_equal(np.array(floats, dtype=np.float32), expected)
    by_type = client.embed(model="minilm", texts=TEXTS, input_type="search_document", embedding_types=["float"]).embeddings
    assert np.array_equal(np.array(by_type.float_, dtype=np.float32), expected)


def test_tei_shapes(server, expected):
    def post(path, message):
        return server.post_json(path, message, "minilm")

    assert np.array_equal(np.array(post("/embed", {"inputs": TEXTS}), dtype=np.float32), expected)
    similar = post("/similarity", {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS[1:3]}})
    assert np.abs(np.array(similar) - expected[1:3] @ expected[0]).max() <= 1e-6
    tokens = post("/tokenize", {"inputs": TEXTS[:1]})[0]
    assert [token["text"] for token in tokens[:3]] == ["[CLS]", "A", "man"]
    assert len(post("/embed_all", {"inputs": TEXTS[0]})[0]) == len(tokens)
    assert "2 models" in server.post_json("/embed", {"inputs": "x"}, code=400)["error"]


def test_the_openapi_document_is_valid(server):
    document = json.loads(server.get("/openapi.json")[1])
    openapi_spec_validator.validate(document)


@pytest.mark.parametrize("model, data", [("minilm", TEXTS_FILE), ("minilm.ids", IDS_FILE)])
def test_perf_analyzer(server, model, data):
    code, text = measure("http", server.http, model, "--input-data", data, "--concurrency-range", 4)
    assert code == 0, text
    assert "Server:" in text and "throughput:" in text
