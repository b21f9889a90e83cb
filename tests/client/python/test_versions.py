# SPDX-License-Identifier: Apache-2.0
"""Versions of a model that differ in their labels and prompts."""

import numpy as np
import pytest

import attendant
import fake_server
from attendant.v1 import encoder_pb2 as pb
from fake_server import model


@pytest.fixture
def versions(fake):
    """Two that serve. Each has a label and a prompt of its own."""
    fake.models = [model("m", version, labels=["same", f"label {version}"], token_labels=[f"token label {version}"],
                         prompt_names=[("query", "passage")[version - 1]]) for version in (1, 2)]
    return fake.models


def scores(request):
    """[sequences, 2], and [tokens, 1] for one token a sequence."""
    count = len(request.sequences.sequences)
    values = np.zeros(2 * count, "<f4").tobytes()
    return pb.EncodeResponse(model=request.model, scores=pb.Tensor(dtype=pb.DTYPE_F32, shape=[count, 2], data=values),
                             token_scores=pb.Tensor(dtype=pb.DTYPE_F32, shape=[count, 1], data=values[:4 * count]),
                             sequences=[pb.SequenceInfo(tokens=1, token_strings=["a"])] * count)


@pytest.mark.parametrize("asked, state, used", [
    (1, "READY", 1), (2, "READY", 2), (None, "READY", 2), (None, "IDLE", 2), (None, "DRAINING", 1), (None, "FAILED", 1),
    (2, "DRAINING", 2)])
def test_labels_are_those_of_the_version_that_answers(versions, connect, monkeypatch, asked, state, used):
    monkeypatch.setattr(fake_server, "encoded", scores)
    versions[1].state = pb.ModelState.Value(f"MODEL_STATE_{state}")
    with connect(model_version=asked) as client:
        assert client.classify(["a", "b"], batch_size=1).labels == ("same", f"label {used}")
        assert client.classify_tokens("a")[0].labels == (f"token label {used}",)


@pytest.mark.parametrize("asked, query, document", [(1, "query", ""), (2, "", "passage"), (None, "", "passage")])
def test_prompts_are_those_of_the_version_that_answers(fake, versions, asked, query, document):
    with attendant.Client(fake.target, model="m", model_version=asked) as client:
        encoder = attendant.SentenceEncoder(client)
        encoder.encode_query("a")
        encoder.encode_document("a")
    assert [request.prompt_name for request in fake.requests[-2:]] == [query, document]


@pytest.mark.parametrize("before", [model("m", state=pb.MODEL_STATE_LOADING),
                                    model("m", state=pb.MODEL_STATE_IDLE, labels=["old", "older"], token_labels=["oldest"]),
                                    model("m", labels=["one"], token_labels=["one", "two"])])
@pytest.mark.parametrize("method, labels", [("classify", ("new", "newer")), ("classify_tokens", ("newest",))])
def test_labels_are_those_of_the_model_that_loads_meanwhile(fake, connect, monkeypatch, before, method, labels):
    """The server is asked again where the model was not ready, or its labels do not fit."""
    monkeypatch.setattr(fake_server, "encoded", scores)
    fake.models = [before]

    def load(*_):
        assert fake.listed.wait(10)
        fake.models = [model("m", labels=["new", "newer"], token_labels=["newest"])]
    fake.script = [load]
    with connect() as client:
        answer = getattr(client, method)(["a"])
    assert (answer if method == "classify" else answer[0]).labels == labels


def test_labels_that_do_not_fit_are_refused(fake, connect, monkeypatch):
    monkeypatch.setattr(fake_server, "encoded", scores)
    with connect() as client, pytest.raises(attendant.InternalError, match="2 scores for the labels"):
        client.classify("a", labels=["one"])
    fake.models = [model("m", labels=["one"])]
    with connect() as client, pytest.raises(attendant.InternalError, match="2 scores for the labels"):
        client.classify("a")


def test_prompts_of_a_model_that_has_not_loaded_are_asked_for_again(fake):
    fake.models = [model("m", state=pb.MODEL_STATE_LOADING)]
    with attendant.Client(fake.target, model="m") as client:
        encoder = attendant.SentenceEncoder(client)
        encoder.encode_query("a")
        assert fake.requests[-1].prompt_name == ""
        for state in (pb.MODEL_STATE_IDLE, pb.MODEL_STATE_LOADING):
            fake.models = [model("m", state=state, prompt_names=["query"] if state == pb.MODEL_STATE_IDLE else [])]
            encoder.encode_query("a")
            assert fake.requests[-1].prompt_name == "query"


def test_prompts_are_asked_for_once_the_model_has_answered(fake):
    """Before, it may not have loaded."""
    fake.models = [model("m", state=pb.MODEL_STATE_LOADING)]

    def load(*_):
        fake.models = [model("m", prompt_names=["query"])]
    fake.script = [load]
    with attendant.Client(fake.target, model="m") as client:
        attendant.SentenceEncoder(client).encode_query("a")
    assert fake.requests[-1].prompt_name == "query"
