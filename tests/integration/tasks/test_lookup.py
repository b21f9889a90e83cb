# SPDX-License-Identifier: Apache-2.0
"""Inference-free SPLADE, from text to answer: queries are looked up, documents go through the encoder. Against
sentence-transformers."""

import json
import shutil
import subprocess

import grpc
import numpy as np
import pytest

from harness import attendant, settings
from harness.attendant import DEADLINE, array, ids, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden" / "routed"
NAMES = ["idf", "in_root", "routed", "weights_txt"]
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    by_default = tmp_path_factory.mktemp("models") / "by_default"
    shutil.copytree(GOLDEN / "routed", by_default)
    router = json.loads((by_default / "router_config.json").read_text(encoding="utf-8"))
    router["parameters"]["default_route"] = "query"
    (by_default / "router_config.json").write_text(json.dumps(router), encoding="utf-8")
    models = {name: GOLDEN / name for name in NAMES} | {"by_default": by_default}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def golden(name):
    return json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))


def vectors(answer):
    """{id: weight} of each sequence."""
    weights, ends = array(answer.sparse.weights), np.cumsum([info.sparse_weights for info in answer.sequences])
    starts = [0, *ends[:-1]]
    return [dict(zip(answer.sparse.ids[start:end], weights[start:end].tolist())) for start, end in zip(starts, ends)]


def sparse(client, name, sequences, prompt=None, **outputs):
    message = attendant.request(name, sequences, sparse=pb.SparseOutput(**outputs))
    if prompt is not None:
        message.prompt_name = prompt
    return client.encode(message)


def assert_close(found, pairs):
    dense, expected = np.zeros(96), np.zeros(96)
    dense[list(found)] = list(found.values())
    for token, weight in pairs:
        expected[token] = weight
    assert np.abs(dense - expected).max() <= TOLERANCE * max(np.linalg.norm(expected), 1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompt", ["query", "document", None])
def test_vectors_are_those_of_sentence_transformers(client, name, prompt):
    expected = golden(name)
    answer = sparse(client, name, texts(*expected["texts"]), prompt)
    for found, pairs in zip(vectors(answer), expected[prompt or "document"], strict=True):
        assert_close(found, pairs)


def test_queries_have_their_own_tokens_alone(client):
    message = attendant.request("routed", texts("the quick fox"), sparse=pb.SparseOutput(), token_strings=True)
    message.prompt_name = "query"
    answer = client.encode(message)
    assert len(answer.sequences[0].token_strings) == answer.sequences[0].tokens > 0
    assert "[CLS]" not in answer.sequences[0].token_strings
    assert len(answer.sparse.token_strings) == len(answer.sparse.ids) > 0
    assert answer.sequences[0].token_strings[0] in answer.sparse.token_strings


def test_a_query_without_tokens_has_no_offsets_in_its_list(client):
    answer = sparse(client, "routed", texts("", "the quick fox"), "query")
    assert not any(info.HasField("offsets") for info in answer.sequences), "they are not asked for"
    message = attendant.request("routed", texts("", "the quick fox"), sparse=pb.SparseOutput(), token_offsets=True)
    message.prompt_name = "query"
    empty, fox = client.encode(message).sequences
    assert empty.tokens == 0 and empty.HasField("offsets") and not empty.offsets.starts
    assert len(fox.offsets.starts) == fox.tokens > 0


def test_long_queries_are_cut_or_refused(client):
    long = golden("routed")["texts"][-1]
    answer = sparse(client, "routed", texts(long), "query")
    assert answer.sequences[0].tokens == 40 and answer.sequences[0].truncated
    message = attendant.request("routed", texts(long), sparse=pb.SparseOutput())
    message.prompt_name = "query"
    message.truncation = pb.TRUNCATION_NONE
    with pytest.raises(grpc.RpcError, match="the limit is"):
        client.encode(message)


def test_the_largest_weights_are_kept(client):
    text = golden("routed")["texts"][1]
    full = vectors(sparse(client, "routed", texts(text), "query"))[0]
    some = vectors(sparse(client, "routed", texts(text), "query", top_k=3))[0]
    assert some == {token: full[token] for token in sorted(sorted(full, key=lambda token: -abs(full[token]))[:3])}


def test_other_outputs_of_queries_are_refused(client):
    for outputs in [{}, {"pooled": pb.PooledOutput()}, {"sparse": pb.SparseOutput(), "fill_mask": pb.FillMaskOutput()}]:
        message = attendant.request("routed", texts("a"), **outputs)
        message.prompt_name = "query"
        with pytest.raises(grpc.RpcError, match="ask for `sparse` alone") as error:
            client.encode(message)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert array(client.encode(attendant.request("routed", texts("a"), pooled=pb.PooledOutput())).pooled).shape == (1, 16)


def test_the_router_decides_on_texts_without_a_prompt(client):
    expected = golden("routed")
    answer = sparse(client, "by_default", texts(*expected["texts"]))
    for found, pairs in zip(vectors(answer), expected["query"], strict=True):
        assert_close(found, pairs)
    # Ids have no prompt: the encoder takes them, in the same request too.
    mixed = sparse(client, "by_default", [*texts(expected["texts"][0]), ids([2, 30, 3])])
    alone = sparse(client, "routed", [ids([2, 30, 3])])
    assert vectors(mixed)[0] == vectors(answer)[0] and vectors(mixed)[1] == vectors(alone)[0]


def test_over_http_and_in_a_repository(server, client, tmp_path):
    text = golden("in_root")["texts"][0]
    vector = server.post_json("/embed_sparse", {"inputs": text, "prompt_name": "query"}, "in_root")[0]
    found = {entry["index"]: entry["value"] for entry in vector}
    assert_close(found, golden("in_root")["query"][0])
    inspected = json.loads(subprocess.run([settings.bin_dir() / "attendant", "inspect", "--json", GOLDEN / "routed"],
                                          capture_output=True, timeout=DEADLINE, check=True).stdout)
    assert inspected["prompt_names"] == ["document", "query"]
    shutil.copytree(GOLDEN / "routed", tmp_path / "models" / "routed")
    with serving(tmp_path, {}, f"--model_repository={tmp_path / 'models'}", "--dtype=f32") as other:
        with attendant.Client(other.grpc) as repository:
            assert vectors(sparse(repository, "routed", texts(text), "query")) == \
                vectors(sparse(client, "routed", texts(text), "query"))
