# SPDX-License-Identifier: Apache-2.0
"""Rerank calls of every protocol to models that have vectors of tokens (ColBERT, BGE-M3): MaxSim. Against PyLate, and
against numpy on the models' own vectors."""

import json
import subprocess

import cohere
import grpc
import numpy as np
import pytest

from harness import attendant, parity, settings
from harness.attendant import DEADLINE, array, pb
from harness.server import serving

tei, tei_stubs = attendant.compiled("tei/v1", "tei")
GOLDEN = settings.ROOT / "tests" / "golden"
COLBERT = sorted(folder.name for folder in (GOLDEN / "colbert").iterdir() if folder.is_dir())
FOLDERS = {name: GOLDEN / "colbert" / name for name in COLBERT} | {"bge_m3": GOLDEN / "tokens" / "bge_m3"}
BY_PYLATE = [name for name in FOLDERS if (FOLDERS[name] / "scores.json").exists()]
SIDES = {"bge_m3": (None, None)}  # the prompts of the two sides
QUERY = "how tall is the tower?"
PASSAGES = ["it rains", "it has 330 metres.", "prices fell", "", "the quick brown fox, again; " * 9]
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), FOLDERS, "--dtype=f32") as running:
        yield running


def pairs(query, passages):
    return [pb.Sequence(pair=pb.TextPair(first=query, second=passage)) for passage in passages]


def scores(client, name, sequences):
    return array(client.encode(attendant.request(name, sequences, scores=pb.ScoreOutput())).scores)[:, 0]


def vectors(client, name, text, prompt):
    message = attendant.request(name, [pb.Sequence(text=text)], multi_vector=pb.MultiVectorOutput())
    if prompt is not None:
        message.prompt_name = prompt
    return array(client.encode(message).multi_vectors)


def max_sim(client, name, query, passage):
    """By numpy; 0 for a text without vectors."""
    first, second = SIDES.get(name, ("query", "document"))
    left, right = vectors(client, name, query, first), vectors(client, name, passage, second)
    return (left.astype(np.float64) @ right.T).max(-1).sum() if len(left) and len(right) else 0


@pytest.mark.parametrize("name", BY_PYLATE)
def test_scores_are_those_of_pylate(client, name):
    texts = json.loads((FOLDERS[name] / "expected.json").read_text(encoding="utf-8"))["texts"]
    wanted = np.array(json.loads((FOLDERS[name] / "scores.json").read_text(encoding="utf-8")))
    found = np.array([scores(client, name, pairs(query, texts)) for query in texts])
    difference = np.abs(found - wanted).max() / wanted.max()
    parity.record(name, "scores of pairs by vectors", difference, TOLERANCE)
    assert difference <= TOLERANCE
    assert np.ptp(wanted) > 50 * TOLERANCE * wanted.max(), "scores that are all the same show nothing"


@pytest.mark.parametrize("name", FOLDERS)
def test_scores_are_max_sim_of_the_models_vectors(client, name):
    found = scores(client, name, pairs(QUERY, PASSAGES))
    wanted = np.array([max_sim(client, name, QUERY, passage) for passage in PASSAGES])
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert len(set(found.tolist())) > 2


@pytest.mark.parametrize("name", FOLDERS)
def test_a_score_has_the_same_bits_in_every_batch(client, name):
    together = scores(client, name, pairs(QUERY, PASSAGES) + pairs("prices", PASSAGES[::-1]))
    alone = [scores(client, name, [pair])[0]
             for pair in pairs(QUERY, PASSAGES) + pairs("prices", PASSAGES[::-1])]
    assert together.tobytes() == np.array(alone).tobytes()


def test_models_tell_that_they_score(client):
    for name, info in client.models().items():
        assert "scores" in info.tasks and not info.labels, name


@pytest.mark.parametrize("name", FOLDERS)
def test_every_protocol_has_the_same_scores(server, client, name):
    wanted = scores(client, name, pairs(QUERY, PASSAGES[:3]))
    order = list(np.argsort(-wanted, kind="stable"))
    answer = cohere.ClientV2(api_key="none", base_url=f"http://{server.http}").rerank(
        model=name, query=QUERY, documents=PASSAGES[:3])
    assert [result.index for result in answer.results] == order
    assert np.array_equal(np.float32([result.relevance_score for result in answer.results]), wanted[order])
    body = {"model": name, "query": QUERY, "documents": PASSAGES[:3]}
    jina = server.post_json("/v1/rerank", body)
    assert np.array_equal(np.float32([result["relevance_score"] for result in jina["results"]]), wanted[order])
    for path in ("/rerank", "/"):
        ranks = server.post_json(path, {"query": QUERY, "texts": PASSAGES[:3], "truncate": True}, name)
        assert [rank["index"] for rank in ranks] == order
        assert np.array_equal(np.float32([rank["score"] for rank in ranks]), wanted[order])
    with grpc.insecure_channel(server.grpc) as channel:
        ranked = tei_stubs.RerankStub(channel).Rerank(tei.RerankRequest(query=QUERY, texts=PASSAGES[:3], truncate=True),
                                                      metadata=(("x-model", name),), timeout=DEADLINE)
    assert np.array_equal(np.float32([rank.score for rank in ranked.ranks]), wanted[order])


def test_the_tokens_are_those_that_were_computed(server, client):
    answer = client.encode(attendant.request("stanford_bert", pairs(QUERY, PASSAGES[:3]), scores=pb.ScoreOutput()))
    tokens = sum(info.tokens for info in answer.sequences)
    ranked = server.post_json("/v2/rerank", {"model": "stanford_bert", "query": QUERY, "documents": PASSAGES[:3]})
    assert ranked["usage"]["total_tokens"] == tokens + 14, "a query has 14 tokens with its expansion, and counts once"


def test_documents_are_cut_to_the_tokens_of_a_rerank_call(server, client):
    def rerank(document, **fields):
        ranked = server.post_json("/v2/rerank", {"model": "bge_m3", "query": QUERY, "documents": [document]} | fields)
        return ranked["results"][0]["relevance_score"], ranked["usage"]["total_tokens"]

    score, tokens = rerank("it rains")
    cut, cut_tokens = rerank("it rains", max_tokens_per_doc=3)
    assert cut_tokens == rerank("")[1] + 1 < tokens and cut != score, "two special tokens and one of the text"
    assert rerank("it rains", max_tokens_per_doc=8) == (score, tokens), "the query has more, and is not cut"


def run(server, *arguments):
    command = [settings.bin_dir() / "attendant", *arguments, f"--server={server.grpc}"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE, stdin=subprocess.DEVNULL)


def test_rerank_on_the_command_line(server, client):
    wanted = scores(client, "pylate_bert", pairs(QUERY, PASSAGES[:3]))
    done = run(server, "rerank", "--model=pylate_bert", f"--query={QUERY}", "--json", "--batch=2", *PASSAGES[:3])
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["index"] for line in lines] == list(np.argsort(-wanted, kind="stable"))
    assert np.array_equal(np.float32([line["score"] for line in lines]), np.sort(wanted)[::-1])
    wrong = run(server, "classify", "--model=pylate_bert", "a")
    assert wrong.returncode != 0 and "no pair of texts" in wrong.stderr
