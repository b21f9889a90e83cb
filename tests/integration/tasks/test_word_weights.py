# SPDX-License-Identifier: Apache-2.0
"""Weights of words by attention, what BM42 is made of: against transformers' attention, and up to BM42's vectors."""

import json
import subprocess

import numpy as np
import pytest

from harness import attendant, settings
from harness.attendant import DEADLINE, array, ids, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden"
EXPECTED = json.loads((GOLDEN / "words" / "expected.json").read_text(encoding="utf-8"))
MODELS = {name.rpartition("/")[2]: GOLDEN / name for name in EXPECTED}
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = MODELS | {"tiny_roberta": GOLDEN / "encoder" / "tiny_roberta", "tiny": settings.TINY_MODEL}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def cases(model):
    return next(found for name, found in EXPECTED.items() if name.endswith(f"/{model}"))


def request(model, sequences, **outputs):
    return attendant.request(model, sequences, word_weights=pb.WordWeightOutput(), **outputs)


def words_of(answer):
    """[(word, weight)] of each sequence."""
    pairs = list(zip(answer.words.words, array(answer.words.weights).tolist(), strict=True))
    ends = np.cumsum([info.words for info in answer.sequences]).tolist()
    assert ends[-1] == len(pairs)
    return [pairs[begin:end] for begin, end in zip([0, *ends], ends)]


@pytest.mark.parametrize("model", MODELS)
def test_words_and_weights_are_those_of_transformers(client, model):
    wanted = cases(model)
    answer = client.encode(request(model, texts(*(case["text"] for case in wanted))))
    assert not answer.attention_weights and not answer.HasField("pooled")
    for case, found in zip(wanted, words_of(answer), strict=True):
        assert [word for word, _ in found] == case["words"]
        assert np.allclose([weight for _, weight in found], case["weights"], atol=TOLERANCE)


@pytest.mark.parametrize("model", MODELS)
def test_words_have_the_same_bits_in_every_batch_and_on_a_stream(client, model):
    requests = [request(model, texts(case["text"])) for case in cases(model)]
    together = client.encode(request(model, texts(*(case["text"] for case in cases(model)))))
    assert b"".join(client.encode(one).words.weights.data for one in requests) == together.words.weights.data
    for i, one in enumerate(requests):
        one.id = str(i)
    answers = {answer.id: answer.response for answer in client.stub.EncodeStream(iter(requests), timeout=DEADLINE)}
    assert b"".join(answers[one.id].words.weights.data for one in requests) == together.words.weights.data


def test_the_weights_are_the_first_row_of_the_attention_weights(client):
    layers = client.models()["tiny_mpnet"].layers
    sequence = texts("the cat sat on the mat")
    whole = client.encode(attendant.request("tiny_mpnet", sequence, token_strings=True,
                                            attention_weights=pb.AttentionSelection(layers=[layers - 1])))
    row = array(whole.attention_weights[0])[0, :, 0].mean(0)
    inner = [value for value, token in zip(row, whole.sequences[0].token_strings) if token not in ("<s>", "</s>")]
    found = words_of(client.encode(request("tiny_mpnet", sequence)))[0]
    assert np.isclose(sum(weight for _, weight in found), sum(inner), atol=TOLERANCE)


def test_other_outputs_come_beside_it_from_the_same_pass(client):
    sequences = texts("the cat sat", "one cat")
    both = client.encode(request("bert_splade", sequences, sparse=pb.SparseOutput(), last_hidden_state=True))
    assert both.words == client.encode(request("bert_splade", sequences)).words
    sparse = client.encode(attendant.request("bert_splade", sequences, sparse=pb.SparseOutput())).sparse
    assert both.sparse == sparse and both.HasField("last_hidden_state")


def test_masked_tokens_and_empty_sequences_have_no_words(client):
    message = attendant.request("bert_splade", texts("the cat sat on the mat"), token_ids=True)
    tokens = client.encode(message).sequences[0].token_ids
    keep = [True] * len(tokens)
    keep[2] = False
    sequences = [ids(tokens, keep), ids(tokens, [False] * len(keep)), ids(tokens)]
    masked, empty, whole = words_of(client.encode(request("bert_splade", sequences)))
    assert not empty and len("".join(word for word, _ in masked)) < len("".join(word for word, _ in whole))


@pytest.mark.parametrize("model, outputs, details", [
    ("tiny_roberta", {}, "WordPiece tokenizer"),
    ("tiny", {}, "WordPiece tokenizer"),
    ("tiny_mpnet", {"attention_weights": pb.AttentionSelection()}, "not for both"),
])
def test_what_has_no_words_is_refused(client, model, outputs, details):
    code, found = client.error(request(model, [ids([2, 3])], **outputs))
    assert (code.name, details in found) == ("INVALID_ARGUMENT", True), found


def bm42(words, stop_words, stem):
    """A document's vector, {stem: weight}, as BM42's client makes it of words and their weights."""
    weights = {}
    for word, weight in words:
        if word not in stop_words and word not in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~":
            weights[stem(word)] = max(weights.get(stem(word), 0), weight)
    return {key: np.log1p(weight) ** 0.5 for key, weight in weights.items()}


def test_a_client_makes_bm42_of_them(client):
    case = cases("tiny_distilbert")[0]
    found = words_of(client.encode(request("tiny_distilbert", texts(case["text"]))))[0]
    options = {"stop_words": {"the", "on", "and"}, "stem": lambda word: word[:2]}
    wanted = bm42(zip(case["words"], case["weights"]), **options)
    vector = bm42(found, **options)
    assert vector.keys() == wanted.keys() and len(vector) >= 4
    assert np.allclose(list(vector.values()), list(wanted.values()), atol=1e-4)


def test_words_over_http(server, client):
    body = {"model": "tiny_distilbert", "sequences": {"sequences": [{"text": "the cat sat"}]},
            "outputs": {"word_weights": {}}}
    answer = server.post_json("/attendant.v1.Encoder/Encode", body)
    wanted = client.encode(request("tiny_distilbert", texts("the cat sat")))
    assert answer["words"]["words"] == list(wanted.words.words)
    assert answer["sequences"][0]["words"] == len(wanted.words.words)


def command(server, *arguments):
    done = subprocess.run([settings.bin_dir() / "attendant", "words", "--model=tiny_distilbert", *arguments,
                           f"--server={server.grpc}"], check=True, capture_output=True, text=True, timeout=DEADLINE)
    return done.stdout


def test_the_command_shows_words(server, client):
    text = "the cat sat on the mat"
    wanted = words_of(client.encode(request("tiny_distilbert", texts(text))))[0]
    found = json.loads(command(server, "--json", text))
    assert list(zip(found["words"], np.float32(found["weights"]))) == wanted
    shown = command(server, "--top=3", text).splitlines()
    assert shown[0] == f"{len(wanted)} words  {text}" and len(shown) == 4
    assert shown[1].split()[1] == max(wanted, key=lambda pair: pair[1])[0]
