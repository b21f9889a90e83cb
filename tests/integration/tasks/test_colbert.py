# SPDX-License-Identifier: Apache-2.0
"""ColBERT models, from text to vectors, as queries and as documents. Against transformers with PyLate's steps."""

import json

import numpy as np
import pytest

from harness import attendant, parity, settings
from harness.attendant import array, ids, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden" / "colbert"
NAMES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
EXPECTED = {name: json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8")) for name in NAMES}
CASES = [(name, side) for name in NAMES for side in ("query", "document")]
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: GOLDEN / name for name in NAMES}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def encode(client, name, sequences, prompt=None, **outputs):
    message = attendant.request(name, sequences, multi_vector=pb.MultiVectorOutput(), token_ids=True, **outputs)
    if prompt is not None:
        message.prompt_name = prompt
    return client.encode(message)


def vectors_of(answer):
    ends = np.cumsum([len(info.vector_tokens) for info in answer.sequences])
    return np.split(array(answer.multi_vectors), ends[:-1])


@pytest.mark.parametrize("name, side", CASES)
def test_vectors_are_those_of_pylate(client, name, side):
    cases = EXPECTED[name][side]
    answer = encode(client, name, texts(*EXPECTED[name]["texts"]), side)
    for case, info, found in zip(cases, answer.sequences, vectors_of(answer)):
        assert list(info.token_ids) == case["ids"]
        assert list(info.vector_tokens) == case["tokens"]
        wanted = np.array(case["vectors"])
        difference = np.linalg.norm(found - wanted, axis=1).max()
        parity.record(name, "vectors of a ColBERT text", difference, TOLERANCE)
        assert difference <= TOLERANCE
        assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-5
        assert info.truncated or info.tokens_seen == info.tokens


@pytest.mark.parametrize("name, side", CASES)
def test_vectors_have_the_same_bits_in_every_batch(client, name, side):
    strings = EXPECTED[name]["texts"]
    together = vectors_of(encode(client, name, texts(*strings), side))
    for string, found in zip(strings, together):
        assert array(encode(client, name, texts(string), side).multi_vectors).tobytes() == found.tobytes()


def test_texts_are_documents_unless_they_are_called_queries(client):
    text = texts("how tall is the tower?")
    assert encode(client, "pylate_bert", text).multi_vectors == encode(client, "pylate_bert", text, "document").multi_vectors
    plain = encode(client, "pylate_bert", text, "").sequences[0]
    document = encode(client, "pylate_bert", text, "document").sequences[0]
    assert list(plain.token_ids) == [document.token_ids[0], *document.token_ids[2:]]
    assert len(plain.vector_tokens) == plain.tokens, "neither marker nor skip list"


def test_ids_are_taken_as_they_are(client):
    case = EXPECTED["stanford_bert"]["query"][0]
    answer = encode(client, "stanford_bert", [ids(case["ids"])], "")
    assert np.abs(array(answer.multi_vectors) - np.array(case["vectors"])).max() <= TOLERANCE
    code, details = client.error(_with_prompt(attendant.request("stanford_bert", [ids(case["ids"])]), "query"))
    assert (code.name, "no single text" in details) == ("INVALID_ARGUMENT", True)


def _with_prompt(message, prompt):
    message.prompt_name = prompt
    return message


@pytest.mark.parametrize("name, side", CASES)
def test_every_token_has_its_offsets(client, name, side):
    info = encode(client, name, texts("how tall is the tower?"), side, token_offsets=True).sequences[0]
    offsets = list(zip(info.offsets.starts, info.offsets.ends, strict=True))
    assert len(offsets) == info.tokens
    if name != "multi_vector_encoder":  # its marker is a prompt's
        assert offsets[1] == (0, 0) and offsets[2][0] == 0 and offsets[2][1] in (1, 3), "h or how"


def test_no_token_attends_to_the_mask_tokens_of_a_query(client):
    text = texts("how tall is the tower?")
    for name, attended in (("pylate_bert", False), ("stanford_bert", True)):
        answer = encode(client, name, text, "query", attention_weights=pb.AttentionSelection())
        weights = array(answer.attention_weights[0])
        filled = [i for i, token in enumerate(answer.sequences[0].token_ids) if token == 4]
        assert filled and (weights[..., filled].max() > 0) == attended
        assert np.abs(weights.sum(-1) - 1).max() < 1e-5


def test_models_tell_their_prompts_and_their_task(client):
    for name, info in client.models().items():
        assert (list(info.prompt_names), info.default_prompt_name) == (["document", "query"], "document"), name
        assert list(info.tasks) == ["scores", "multi_vector"]


def test_long_texts_are_cut_or_refused(client):
    strings = EXPECTED["pylate_bert"]["texts"]
    info = encode(client, "pylate_bert", texts(strings[-1]), "query").sequences[0]
    assert info.truncated and info.tokens == 14 and info.tokens_seen > 14
    message = _with_prompt(attendant.request("pylate_bert", texts(strings[-1]), multi_vector=pb.MultiVectorOutput()), "query")
    message.truncation = pb.TRUNCATION_NONE
    assert client.error(message)[0].name == "INVALID_ARGUMENT"
