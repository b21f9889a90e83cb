# SPDX-License-Identifier: Apache-2.0
"""Classifiers and rerankers of every kind of head, from text to score, against transformers."""

import json
import subprocess

import cohere
import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils

from harness import attendant, parity, settings
from harness.attendant import DEADLINE, array, ids, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden" / "classifier"
NAMES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
LABELS = {name: ["bad", "fair", "good"]
          for name in ("albert_classifier", "esm_classifier", "gemma3_classifier", "gte_classifier", "roberta_classifier",
                       "xlm_roberta_multi_label")}
LABELS["distilbert_classifier"] = ["LABEL_0", "LABEL_1"]
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: GOLDEN / name for name in NAMES} | {"tiny": settings.TINY_MODEL}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def sequences(inputs):
    return [pb.Sequence(text=strings[0]) if len(strings) == 1
            else pb.Sequence(pair=pb.TextPair(first=strings[0], second=strings[1])) for strings in inputs]


def scores(client, name, inputs, activation=pb.SCORE_ACTIVATION_UNSPECIFIED):
    message = attendant.request(name, sequences(inputs), scores=pb.ScoreOutput(activation=activation))
    return array(client.encode(message).scores)


def expected(name):
    cases = json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))
    return ([case["texts"] for case in cases], np.array([case["logits"] for case in cases]),
            np.array([case["scores"] for case in cases]))


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_scores_are_those_of_transformers(client, name):
    inputs, logits, probabilities = expected(name)
    for output, found, wanted in (("logits", scores(client, name, inputs, pb.SCORE_ACTIVATION_NONE), logits),
                                  ("scores", scores(client, name, inputs), probabilities)):
        difference = float(np.abs(found - wanted).max() / np.linalg.norm(wanted))
        parity.record(name, f"{output} of a classifier", difference, TOLERANCE)
        assert difference <= TOLERANCE
    assert np.ptp(logits, axis=0).min() > 0.01, "inputs that give the same logits show nothing"


@pytest.mark.parametrize("name", NAMES)
def test_a_score_has_the_same_bits_in_every_batch(client, name):
    inputs = expected(name)[0]
    together = scores(client, name, inputs)
    for i, one in enumerate(inputs):
        assert scores(client, name, [one]).tobytes() == together[i].tobytes()


def test_activations(client):
    inputs, logits, _ = expected("roberta_classifier")
    sigmoid = scores(client, "roberta_classifier", inputs, pb.SCORE_ACTIVATION_SIGMOID)
    assert np.abs(sigmoid - 1 / (1 + np.exp(-logits))).max() < 1e-5
    softmax = scores(client, "bert_reranker", inputs, pb.SCORE_ACTIVATION_SOFTMAX)
    assert (softmax == 1).all()


def test_models_tell_their_labels(client):
    for name, info in client.models().items():
        assert list(info.labels) == ([] if name == "tiny" else LABELS.get(name, ["LABEL_0"])), name


def test_a_classifier_embeds_too(client):
    message = attendant.request("bert_reranker", sequences([["a"], ["a", "b"]]), pooled=pb.PooledOutput())
    pooled = array(client.encode(message).pooled)
    assert pooled.shape == (2, 32) and (pooled[0] != pooled[1]).any()


@pytest.mark.parametrize("message, code, details", [
    (attendant.request("tiny", [ids([5])], scores=pb.ScoreOutput()), "INVALID_ARGUMENT", "has no such head"),
    (attendant.request("bert_reranker", texts("a"), scores=pb.ScoreOutput(), pooled=pb.PooledOutput()),
     "INVALID_ARGUMENT", "not for both"),
    (attendant.request("bert_reranker", texts("a"), scores=pb.ScoreOutput(activation=9)), "INVALID_ARGUMENT",
     "outputs.scores.activation"),
    (attendant.request("tiny", sequences([["a", "b"]])), "INVALID_ARGUMENT", "takes token ids only"),
])
def test_what_cannot_be_scored_is_refused(client, message, code, details):
    with pytest.raises(grpc.RpcError) as caught:
        client.encode(message)
    assert caught.value.code().name == code
    assert details in caught.value.details()


def test_a_decoder_leaves_padding_out(client):
    padding = 2
    plain = array(client.encode(attendant.request("qwen3_reranker", [ids([5, 6, 7])], scores=pb.ScoreOutput())).scores)
    padded = attendant.request("qwen3_reranker", [ids([5, 6, 7, padding, padding])], scores=pb.ScoreOutput())
    assert array(client.encode(padded).scores).tobytes() == plain.tobytes()
    only = attendant.request("qwen3_reranker", [ids([padding, padding])], scores=pb.ScoreOutput())
    assert array(client.encode(only).scores).shape == (1, 1)
    with pytest.raises(grpc.RpcError) as caught:
        client.encode(attendant.request("gemma3_classifier", [ids([5, 0])], scores=pb.ScoreOutput()))
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert "sequence 0: it ends in the padding token, id 0" in caught.value.details()


def test_a_pair_that_is_too_long_is_refused_on_demand(client):
    message = attendant.request("bert_reranker", sequences([["how tall", "prices fell " * 30]]), scores=pb.ScoreOutput())
    assert client.encode(message).sequences[0].truncated
    message.truncation = pb.TRUNCATION_NONE
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.Encode(message, timeout=DEADLINE)
    assert "the pair of texts has" in caught.value.details()


QUERY = "how tall is the tower?"
PASSAGES = ["it rains", "it has 330 metres.", "prices fell"]


def test_rerank_by_coheres_client(server, client):
    wanted = scores(client, "bert_reranker", [[QUERY, passage] for passage in PASSAGES])[:, 0]
    order = list(np.argsort(-wanted))
    answer = cohere.ClientV2(api_key="none", base_url=f"http://{server.http}").rerank(
        model="bert_reranker", query=QUERY, documents=PASSAGES, top_n=2)
    assert [result.index for result in answer.results] == order[:2]
    assert np.allclose([result.relevance_score for result in answer.results], wanted[order[:2]], atol=1e-7)


def test_rerank_over_http(server, client):
    wanted = scores(client, "electra_cross_encoder", [[QUERY, passage] for passage in PASSAGES])[:, 0]
    order = list(np.argsort(-wanted))
    jina = server.post_json("/v1/rerank", {"model": "electra_cross_encoder", "query": QUERY, "return_documents": True,
                                           "documents": [{"text": passage} for passage in PASSAGES]})
    assert [result["index"] for result in jina["results"]] == order
    assert [result["document"]["text"] for result in jina["results"]] == [PASSAGES[i] for i in order]
    sigmoid = 1 / (1 + np.exp(-wanted[order].astype(np.float64)))
    assert np.allclose([result["relevance_score"] for result in jina["results"]], sigmoid, atol=1e-6)
    tei = server.post_json("/rerank", {"query": QUERY, "texts": PASSAGES, "raw_scores": True, "return_text": True},
                           "electra_cross_encoder")
    assert [rank["index"] for rank in tei] == order
    assert np.array_equal(np.float32([rank["score"] for rank in tei]), wanted[order])
    assert [rank["text"] for rank in tei] == [PASSAGES[i] for i in order]


def test_scores_and_pooling_of_vllms_clients(server, client):
    """The model's own activation, as in vLLM: none for the first, a sigmoid for the second."""
    for model in ("electra_cross_encoder", "bert_reranker"):
        wanted = scores(client, model, [[QUERY, passage] for passage in PASSAGES])[:, 0]
        answer = server.post_json("/score", {"model": model, "text_1": QUERY, "text_2": PASSAGES})
        assert set(answer) == {"id", "object", "created", "model", "data", "usage"}
        assert [(data["index"], data["object"]) for data in answer["data"]] == [(i, "score") for i in range(3)]
        assert np.array_equal(np.float32([data["score"] for data in answer["data"]]), wanted)
    labels = server.post_json("/pooling", {"model": "roberta_classifier", "input": PASSAGES})
    assert [(data["index"], data["object"]) for data in labels["data"]] == [(i, "pooling") for i in range(3)]
    assert np.array_equal(np.float32([data["data"] for data in labels["data"]]),
                          scores(client, "roberta_classifier", [[passage] for passage in PASSAGES]))


def test_predict_over_http(server, client):
    model = "roberta_classifier"
    wanted = scores(client, model, [["never again"], ["a", "b"]])

    def labels(row):
        order = np.argsort(-row, kind="stable")
        return [LABELS[model][i] for i in order], row[order]

    one = server.post_json("/predict", {"inputs": "never again"}, model)
    assert [label["label"] for label in one] == labels(wanted[0])[0]
    assert np.array_equal(np.float32([label["score"] for label in one]), labels(wanted[0])[1])
    assert server.post_json("/predict", {"inputs": ["a", "b"]}, model)[0]["label"] == labels(wanted[1])[0][0]
    many = server.post_json("/predict", {"inputs": [["never again"], ["a", "b"]]}, model)
    assert many[0] == one and len(many) == 2


@pytest.mark.parametrize("path, body, model, message", [
    ("/v2/rerank", {"model": "roberta_classifier", "query": "a", "documents": ["b"]}, "", "it has 3 labels, not 1"),
    ("/v2/rerank", {"model": "tiny", "query": "a", "documents": ["b"]}, "", "has no such head"),
    ("/v2/rerank", {"model": "bert_reranker", "documents": ["b"]}, "", "query is missing"),
    ("/v2/rerank", {"model": "bert_reranker", "query": "a", "documents": [{"txt": "b"}]}, "", "documents[0]"),
    ("/v2/rerank", {"model": "bert_reranker", "query": "a", "documents": []}, "", "documents is empty"),
    ("/v2/rerank", {"model": "bert_reranker", "query": "a" * 2**20, "documents": ["b"] * 5}, "", "for 5 texts"),
    ("/v2/rerank", {"model": "bert_reranker", "query": "a", "documents": ["b"], "top_n": 0}, "", "top_n is 0"),
    ("/rerank", {"query": 1, "texts": ["b"]}, "bert_reranker", "query must be a string"),
    ("/predict", {"inputs": ["a", "b", "c"]}, "roberta_classifier", "one or two strings"),
    ("/predict", {"inputs": [["a", 1]]}, "roberta_classifier", "inputs[0]"),
    ("/predict", {}, "roberta_classifier", "inputs is missing"),
])
def test_what_cannot_be_scored_is_refused_over_http(server, path, body, model, message):
    answer = server.post_json(path, body, model, code=400)
    assert message in answer.get("message", answer.get("error")), answer


def run(server, *arguments):
    command = [settings.bin_dir() / "attendant", *arguments, f"--server={server.grpc}"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE, stdin=subprocess.DEVNULL)


def test_rerank_on_the_command_line(server, client):
    query, passages = QUERY, PASSAGES
    wanted = scores(client, "bert_reranker", [[query, passage] for passage in passages])[:, 0]
    done = run(server, "rerank", "--model=bert_reranker", f"--query={query}", "--json", "--batch=2", *passages)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["index"] for line in lines] == list(np.argsort(-wanted))
    assert np.allclose([line["score"] for line in lines], -np.sort(-wanted), atol=1e-7)
    top = run(server, "rerank", "--model=bert_reranker", f"--query={query}", "--top=1", "--raw", *passages)
    assert top.stdout.count("\n") == 1 and passages[int(np.argmax(wanted))] in top.stdout
    wrong = run(server, "rerank", "--model=roberta_classifier", "--query=a", "b")
    assert wrong.returncode == 2 and "it has 3 labels, not 1" in wrong.stderr
    assert run(server, "rerank", "--model=bert_reranker", "b").returncode == 2


def test_classify_on_the_command_line(server, client):
    wanted = scores(client, "roberta_classifier", [["never again"]])[0]
    done = run(server, "classify", "--model=roberta_classifier", "--json", "--top=2", "never again")
    assert done.returncode == 0, done.stderr
    labels = json.loads(done.stdout)["labels"]
    best = np.argsort(-wanted)[:2]
    assert [label["label"] for label in labels] == [LABELS["roberta_classifier"][i] for i in best]
    assert np.allclose([label["score"] for label in labels], wanted[best], atol=1e-7)
    wrong = run(server, "classify", "--model=tiny", "a")
    assert wrong.returncode == 1 and "has no such head" in wrong.stderr


def kserve_scores(kserve, package, name, inputs):
    text = package.InferInput("text", [len(inputs), len(inputs[0])], "BYTES")
    text.set_data_from_numpy(np.array([[string.encode() for string in row] for row in inputs], dtype=object))
    return kserve.infer(f"{name}.scores", [text]).as_numpy("scores")


@pytest.mark.parametrize("name", ["bert_reranker", "roberta_classifier"])
def test_kserve_has_scores_of_texts_and_pairs(server, client, name):
    labels = {"bert_reranker": 1, "roberta_classifier": 3}[name]
    with tritonclient.grpc.InferenceServerClient(server.grpc) as grpc_client, \
            tritonclient.http.InferenceServerClient(server.http) as http_client:
        metadata = grpc_client.get_model_metadata(f"{name}.scores")
        assert [(tensor.name, list(tensor.shape)) for tensor in metadata.outputs] == [("scores", [-1, labels])]
        assert [(tensor.name, list(tensor.shape)) for tensor in metadata.inputs] == [("text", [-1, -1])]
        assert http_client.get_model_config(f"{name}.scores")["output"][0]["dims"] == [labels]
        index = {model.name for model in grpc_client.get_model_repository_index().models}
        assert f"{name}.scores" in index and "tiny.scores" not in index
        for width in (1, 2):
            inputs = [row for row in expected(name)[0] if len(row) == width]
            wanted = scores(client, name, inputs)
            assert (kserve_scores(grpc_client, tritonclient.grpc, name, inputs) == wanted).all()
            assert np.allclose(kserve_scores(http_client, tritonclient.http, name, inputs), wanted, atol=1e-7)
        statistics = grpc_client.get_inference_statistics(f"{name}.scores").model_stats[0]
        assert statistics.inference_count >= len(expected(name)[0])


def test_kserve_refuses_scores_that_are_not_there(server):
    def message(name, shape):
        with tritonclient.grpc.InferenceServerClient(server.grpc) as kserve:
            text = tritonclient.grpc.InferInput("text", shape, "BYTES")
            text.set_data_from_numpy(np.full(shape, b"fox", dtype=object))
            with pytest.raises(tritonclient.utils.InferenceServerException) as error:
                kserve.infer(name, [text])
        return error.value.message()
    assert "has no tokenizer" in message("tiny.scores", [1, 1])
    assert "has length 3, the limit is 2" in message("bert_reranker.scores", [1, 3])
    assert "expected [batch, 1]" in message("bert_reranker", [1, 2])
