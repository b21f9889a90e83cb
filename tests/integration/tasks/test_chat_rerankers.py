# SPDX-License-Identifier: Apache-2.0
"""Rerankers that put pairs of texts into a chat template, against sentence-transformers."""

import json
import subprocess

import cohere
import grpc
import numpy as np
import pytest

from harness import attendant, parity, settings
from harness.attendant import DEADLINE, array, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden" / "chat"
NAMES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), {name: GOLDEN / name for name in NAMES}, "--dtype=f32") as running:
        yield running


def scores(client, name, pairs, prompt=None, activation=pb.SCORE_ACTIVATION_UNSPECIFIED, **more):
    sequences = [pb.Sequence(pair=pb.TextPair(first=first, second=second)) for first, second in pairs]
    message = attendant.request(name, sequences, scores=pb.ScoreOutput(activation=activation))
    if prompt is not None:
        message.prompt_name = prompt
    for field, value in more.items():
        setattr(message, field, value)
    return array(client.encode(message).scores)[:, 0]


def expected(name):
    """For each prompt, "" for none: its pairs, their logits and scores."""
    cases = json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))
    for prompt in dict.fromkeys(case["prompt"] for case in cases):
        of_prompt = [case for case in cases if case["prompt"] == prompt]
        yield (prompt, [case["texts"] for case in of_prompt], np.array([case["logit"] for case in of_prompt]),
               np.array([case["score"] for case in of_prompt]))


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_scores_are_those_of_sentence_transformers(client, name):
    prompts = list(expected(name))
    for output, activation in (("logits", pb.SCORE_ACTIVATION_NONE), ("scores", pb.SCORE_ACTIVATION_UNSPECIFIED)):
        found = [scores(client, name, pairs, prompt, activation) for prompt, pairs, *_ in prompts]
        wanted = [logits if output == "logits" else probabilities for _, _, logits, probabilities in prompts]
        difference = float(np.abs(np.concatenate(found) - np.concatenate(wanted)).max() / np.linalg.norm(wanted[0]))
        parity.record(name, f"{output} of a reranker with a chat template", difference, TOLERANCE)
        assert difference <= TOLERANCE
    assert len(prompts) == {"qwen2_word": 1, "qwen3_classifier": 2, "qwen3_words": 4}[name]


def test_the_default_prompt_counts(client):
    pair = [["how tall is the tower?", "it rains"]]
    default = scores(client, "qwen3_words", pair)
    assert default.tobytes() == scores(client, "qwen3_words", pair, "facts").tobytes()
    assert default != scores(client, "qwen3_words", pair, "")
    assert scores(client, "qwen3_words", pair, "none").tobytes() == scores(client, "qwen3_words", pair, "").tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_score_has_the_same_bits_in_every_batch(client, name):
    _, pairs, *_ = next(expected(name))
    together = scores(client, name, pairs)
    for i, pair in enumerate(pairs):
        assert scores(client, name, [pair]).tobytes() == together[i].tobytes()


QUERY = "a fox"
PASSAGES = ["it rains", "the dog", "prices"]


@pytest.mark.parametrize("name", NAMES)
def test_rerank_over_http(server, client, name):
    wanted = scores(client, name, [[QUERY, passage] for passage in PASSAGES])
    order = list(np.argsort(-wanted))
    tei = server.post_json("/rerank", {"query": QUERY, "texts": PASSAGES, "raw_scores": True}, name)
    assert [rank["index"] for rank in tei] == order
    jina = server.post_json("/v1/rerank", {"model": name, "query": QUERY, "documents": PASSAGES})
    assert [result["index"] for result in jina["results"]] == order
    by_cohere = cohere.ClientV2(api_key="none", base_url=f"http://{server.http}").rerank(
        model=name, query=QUERY, documents=PASSAGES)
    assert [result.index for result in by_cohere.results] == order
    vllm = server.post_json("/score", {"model": name, "text_1": QUERY, "text_2": PASSAGES})
    assert np.array_equal(np.float32([data["score"] for data in vllm["data"]]), wanted)


def test_a_document_may_be_cut(server):
    def ranked(document, **more):
        body = {"model": "qwen2_word", "query": QUERY, "documents": [document], **more}
        return server.post_json("/v2/rerank", body)["results"][0]["relevance_score"]

    assert ranked("zzzzzz", max_tokens_per_doc=3) == ranked("zzz") != ranked("zzzzzz")


def refused(client, message):
    with pytest.raises(grpc.RpcError) as caught:
        client.encode(message)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    return caught.value.details()


def test_what_has_no_place_in_the_template_is_refused(client):
    for outputs in ({"scores": pb.ScoreOutput()}, {"pooled": pb.PooledOutput()}):
        details = refused(client, attendant.request("qwen3_words", texts("a"), **outputs))
        assert "sequence 0: it is a single text, but the chat template of model 'qwen3_words' takes pairs" in details
    pair = pb.Sequence(pair=pb.TextPair(first="a", second="b" * 500))
    message = attendant.request("qwen3_words", [pair], scores=pb.ScoreOutput())
    message.pair_truncation = pb.PAIR_TRUNCATION_ONLY_SECOND
    assert "pair_truncation is not for model 'qwen3_words'" in refused(client, message)
    message = attendant.request("qwen3_words", [pair], scores=pb.ScoreOutput())
    message.truncation = pb.TRUNCATION_NONE
    assert "tokens, the limit is 84" in refused(client, message)
    message = attendant.request("qwen3_words", [pair], scores=pb.ScoreOutput())
    message.prompt_name = "other"
    assert "prompt_name is 'other', the model has the prompts 'facts', 'none', 'odd'" in refused(client, message)
    message = attendant.request("qwen3_words", [pair], scores=pb.ScoreOutput(), token_offsets=True)
    assert "token_offsets are not for model 'qwen3_words'" in refused(client, message)


def test_tokens_of_the_vocabulary_are_taken_as_they_are(client):
    case = json.loads((GOLDEN / "qwen2_word" / "expected.json").read_text(encoding="utf-8"))[1]
    alone = scores(client, "qwen2_word", [case["texts"]])
    message = attendant.request("qwen2_word", [attendant.ids(case["ids"])], scores=pb.ScoreOutput())
    assert array(client.encode(message).scores).tobytes() == alone.tobytes()


def test_the_prompt_may_be_chosen_on_the_command_line(server, client):
    for flags, prompt in (([], "facts"), (["--prompt_name=odd"], "odd"), (["--no-prompt"], "")):
        command = [settings.bin_dir() / "attendant", "rerank", f"--server={server.grpc}", "--model=qwen3_words", "--json",
                   f"--query={QUERY}", *flags, PASSAGES[0]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["score"]
        assert np.isclose(found, scores(client, "qwen3_words", [[QUERY, PASSAGES[0]]], prompt)[0], atol=1e-6)
