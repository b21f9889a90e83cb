# SPDX-License-Identifier: Apache-2.0
"""Heads on tokens as KServe models, over gRPC and HTTP: the same numbers as attendant.v1 has."""

import json

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils

from harness import attendant, settings
from harness.attendant import array, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden"
MODELS = {"bert_splade": "tokens/bert_splade", "bert_tokens": "tokens/bert_tokens", "bge_m3": "tokens/bge_m3",
          "pylate_bert": "colbert/pylate_bert", "routed": "routed/routed"}
TEXTS = ["the quick brown fox", "never [MASK] again", "", "how [MASK] is the [MASK]? it has 330 metres."]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: GOLDEN / folder for name, folder in MODELS.items()} | {"tiny": settings.TINY_MODEL}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


@pytest.fixture(params=[tritonclient.grpc, tritonclient.http], ids=["grpc", "http"])
def infer(request, server):
    """infer(name, texts, outputs=None, **options): the InferResult."""
    package = request.param
    with package.InferenceServerClient(server.grpc if package is tritonclient.grpc else server.http) as kserve:
        def run(name, strings, outputs=None, **options):
            text = package.InferInput("text", [len(strings), 1], "BYTES")
            text.set_data_from_numpy(np.array([[string.encode()] for string in strings], dtype=object))
            if outputs is not None:
                outputs = [package.InferRequestedOutput(output) for output in outputs]
            return kserve.infer(name, [text], outputs=outputs, **options)
        run.package = package
        yield run


def unpadded(rows, lengths):
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]


def test_sparse_vectors(infer, client):
    answer = client.encode(attendant.request("bert_splade", texts(*TEXTS), sparse=pb.SparseOutput()))
    counts = [info.sparse_weights for info in answer.sequences]
    result = infer("bert_splade.sparse", TEXTS)
    indices, weights = result.as_numpy("indices"), result.as_numpy("weights")
    assert indices.dtype == np.int32 and indices.shape == weights.shape == (len(TEXTS), max(counts))
    assert np.concatenate(unpadded(indices, counts)).tolist() == list(answer.sparse.ids)
    assert np.array_equal(np.concatenate(unpadded(weights, counts)), array(answer.sparse.weights))
    assert all((row[count:] == -1).all() for row, count in zip(indices, counts))
    assert all((row[count:] == 0).all() for row, count in zip(weights, counts))


def test_token_scores(infer, client):
    answer = client.encode(attendant.request("bert_tokens", texts(*TEXTS), token_scores=pb.TokenScoreOutput(),
                                             token_ids=True))
    lengths = [info.tokens for info in answer.sequences]
    result = infer("bert_tokens.tokens", TEXTS)
    scores, ids = result.as_numpy("scores"), result.as_numpy("token_ids")
    assert scores.shape == (len(TEXTS), max(lengths), 4)
    assert [row.tolist() for row in unpadded(ids, lengths)] == [list(info.token_ids) for info in answer.sequences]
    assert np.array_equal(np.concatenate(unpadded(scores, lengths)), array(answer.token_scores))


def test_predictions_at_masks(infer, client):
    answer = client.encode(attendant.request("bert_splade", texts(*TEXTS), fill_mask=pb.FillMaskOutput()))
    result = infer("bert_splade.masks", TEXTS)
    places = result.as_numpy("tokens")
    assert [[place for place in row if place >= 0] for row in places.tolist()] == \
        [list(info.mask_tokens) for info in answer.sequences]
    masks = places >= 0
    assert np.array_equal(result.as_numpy("scores")[masks], array(answer.fill_mask.scores))
    assert result.as_numpy("indices")[masks].ravel().tolist() == list(answer.fill_mask.token_ids)
    none = infer("bert_splade.masks", TEXTS[:1])
    assert none.as_numpy("scores").shape == (1, 0, 5)


@pytest.mark.parametrize("name, prompt", [("bge_m3", None), ("pylate_bert", None), ("pylate_bert", "query")])
def test_vectors_of_tokens(infer, client, name, prompt):
    message = attendant.request(name, texts(*TEXTS), multi_vector=pb.MultiVectorOutput())
    if prompt is not None:
        message.prompt_name = prompt
    answer = client.encode(message)
    result = infer(f"{name}.multi_vectors", TEXTS, **({} if prompt is None else {"parameters": {"prompt_name": prompt}}))
    places = result.as_numpy("tokens")
    assert [[place for place in row if place >= 0] for row in places.tolist()] == \
        [list(info.vector_tokens) for info in answer.sequences]
    assert np.array_equal(result.as_numpy("vectors")[places >= 0], array(answer.multi_vectors))
    assert not result.as_numpy("vectors")[places < 0].any()


def test_queries_that_are_looked_up(infer):
    expected = json.loads((GOLDEN / "routed" / "routed" / "expected.json").read_text(encoding="utf-8"))
    result = infer("routed.sparse", expected["texts"], parameters={"prompt_name": "query"})
    for pairs, indices, weights in zip(expected["query"], result.as_numpy("indices"), result.as_numpy("weights")):
        assert indices[:len(pairs)].tolist() == [token for token, _ in pairs]
        assert np.allclose(weights[:len(pairs)], [weight for _, weight in pairs])
        assert (indices[len(pairs):] == -1).all()


def test_one_of_the_outputs(infer):
    result = infer("bert_splade.sparse", TEXTS, outputs=["weights"])
    assert result.as_numpy("indices") is None
    assert np.array_equal(result.as_numpy("weights"), infer("bert_splade.sparse", TEXTS).as_numpy("weights"))


def test_outputs_as_json_and_as_bytes_together(server):
    package = tritonclient.http
    with package.InferenceServerClient(server.http) as kserve:
        text = package.InferInput("text", [1, 1], "BYTES")
        text.set_data_from_numpy(np.array([[b"the fox"]], dtype=object))
        outputs = [package.InferRequestedOutput("indices", binary_data=False),
                   package.InferRequestedOutput("weights", binary_data=True)]
        mixed = kserve.infer("bert_splade.sparse", [text], outputs=outputs)
        whole = kserve.infer("bert_splade.sparse", [text])
        for name in ("indices", "weights"):
            assert np.array_equal(mixed.as_numpy(name), whole.as_numpy(name))


def test_metadata_names_them(server):
    with tritonclient.grpc.InferenceServerClient(server.grpc) as kserve:
        def outputs(name):
            return [(tensor.name, tensor.datatype, list(tensor.shape))
                    for tensor in kserve.get_model_metadata(name).outputs]
        assert outputs("bert_splade.sparse") == [("indices", "INT32", [-1, -1]), ("weights", "FP32", [-1, -1])]
        assert outputs("bert_tokens.tokens") == [("token_ids", "INT32", [-1, -1]), ("scores", "FP32", [-1, -1, 4])]
        assert outputs("bge_m3.multi_vectors") == [("tokens", "INT32", [-1, -1]), ("vectors", "FP32", [-1, -1, 24])]
        assert outputs("bert_splade.masks")[2] == ("scores", "FP32", [-1, -1, 5])
        config = kserve.get_model_config("bert_tokens.tokens", as_json=True)["config"]
        assert [output["name"] for output in config["output"]] == ["token_ids", "scores"]
        index = {model.name for model in kserve.get_model_repository_index().models}
        assert {"bert_splade.sparse", "bert_splade.masks", "bge_m3.sparse", "bge_m3.multi_vectors"} <= index
        assert not {"bert_splade.tokens", "bert_tokens.sparse", "bge_m3.masks"} & index


def test_what_is_not_there_is_refused(infer, server):
    def message(*arguments, **options):
        with pytest.raises(tritonclient.utils.InferenceServerException) as error:
            infer(*arguments, **options)
        return error.value.message()
    assert "no head that makes sparse" in message("bert_tokens.sparse", ["a"])
    assert "'scores' is unknown, the model has indices, weights" in message("bert_splade.sparse", ["a"], ["scores"])
    assert "the model has the prompts" in message("routed.sparse", ["a"], parameters={"prompt_name": "x"})
    with pytest.raises(tritonclient.utils.InferenceServerException, match="must be a text"):
        infer("routed.sparse", ["a"], parameters={"prompt_name": 1})
