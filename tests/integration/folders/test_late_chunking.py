# SPDX-License-Identifier: Apache-2.0
"""Late chunking: embeddings of spans, pooled from one pass over a text, against sentence-transformers' modules."""

import base64
import json
import subprocess

import numpy as np
import pytest

from harness import attendant, settings
from harness.attendant import DEADLINE, array, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden" / "sentence"
NAMES = ["many_modules", "prompts"]
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: GOLDEN / name for name in [*NAMES, "every_pooling", "prompt_left_out"]}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def cases(name):
    return json.loads((GOLDEN / name / "spans.json").read_text(encoding="utf-8"))


def with_spans(text, spans):
    begins, ends = zip(*spans)
    return pb.Sequence(text=text, spans=pb.TokenSpans(begins=begins, ends=ends))


def request(name, sequences, **pooled):
    message = attendant.request(name, sequences, pooled=pb.PooledOutput(**pooled))
    message.prompt_name = ""
    return message


def spans_of(info):
    return [list(span) for span in zip(info.spans.begins, info.spans.ends)]


@pytest.mark.parametrize("name", NAMES)
def test_spans_are_those_of_sentence_transformers(client, name):
    sequences = [with_spans(case["text"], case["spans"]) for case in cases(name)]
    answer = client.encode(request(name, sequences))
    assert [spans_of(info) for info in answer.sequences] == [case["spans"] for case in cases(name)]
    wanted = np.concatenate([case["embeddings"] for case in cases(name)])
    found = array(answer.pooled)
    assert found.shape == wanted.shape
    errors = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert errors.max() <= TOLERANCE
    assert np.ptp(wanted, axis=0).max() > 0.01, "spans that give the same embedding show nothing"


@pytest.mark.parametrize("name", NAMES)
def test_spans_have_the_same_bits_in_every_batch_and_on_a_stream(client, name):
    sequences = [with_spans(case["text"], case["spans"]) for case in cases(name)] + texts("the cat")
    together = client.encode(request(name, sequences)).pooled.data
    alone = [request(name, [sequence]) for sequence in sequences]
    assert b"".join(client.encode(one).pooled.data for one in alone) == together
    for i, one in enumerate(alone):
        one.id = str(i)
    answers = {answer.id: answer.response for answer in client.stub.EncodeStream(iter(alone), timeout=DEADLINE)}
    assert b"".join(answers[one.id].pooled.data for one in alone) == together


def test_chunks_cover_the_text_and_one_chunk_is_the_embedding(client):
    text = cases("prompts")[0]["text"]
    whole = client.encode(request("prompts", texts(text)))
    tokens = whole.sequences[0].tokens
    answer = client.encode(request("prompts", texts(text), chunk_tokens=5))
    spans = spans_of(answer.sequences[0])
    assert len(spans) == -(-tokens // 5) and [spans[0][0], spans[-1][1]] == [0, tokens]
    assert all(last[1] == first[0] for last, first in zip(spans, spans[1:]))
    assert {end - begin for begin, end in spans} <= {tokens // len(spans), tokens // len(spans) + 1}
    own = client.encode(request("prompts", [with_spans(text, spans)]))
    assert own.pooled == answer.pooled and not whole.sequences[0].HasField("spans")
    assert client.encode(request("prompts", texts(text), chunk_tokens=tokens)).pooled.data == whole.pooled.data


def test_chunks_begin_behind_a_prompt_that_is_left_out(client):
    text = "the cat sat on the mat"
    message = request("prompt_left_out", texts(text), chunk_tokens=4, pooling=pb.POOLING_MEAN)
    plain = client.encode(message).sequences[0]
    message.prompt_name = "query"
    prompted = client.encode(message)
    begin = spans_of(prompted.sequences[0])[0][0]
    assert begin == prompted.sequences[0].tokens - plain.tokens + 1, "behind [CLS] and the prompt"
    message.sequences.sequences[0].spans.CopyFrom(pb.TokenSpans(begins=[0, 0], ends=[begin, begin + 1]))
    message.outputs.last_hidden_state = True
    answer = client.encode(message)
    assert not array(answer.pooled)[0].any()
    assert np.allclose(array(answer.pooled)[1], array(answer.last_hidden_state)[begin], atol=1e-6)


def test_each_pooling_over_tokens(client):
    text, (begin, end) = "the cat sat on the mat", (2, 6)
    message = request("every_pooling", [with_spans(text, [(begin, end)])], normalize=False)
    message.outputs.last_hidden_state = True
    code, details = client.error(message)
    assert (code.name, "cls and last" in details) == ("INVALID_ARGUMENT", True), details
    for pooling in ("MEAN", "MAX", "MEAN_SQRT_LEN", "WEIGHTED_MEAN"):
        message.outputs.pooled.pooling = pb.Pooling.Value(f"POOLING_{pooling}")
        answer = client.encode(message)
        states = array(answer.last_hidden_state)[begin:end]
        weights = np.arange(begin + 1, end + 1)[:, None]
        wanted = {"MEAN": states.mean(0), "MAX": states.max(0), "MEAN_SQRT_LEN": states.sum(0) / np.sqrt(end - begin),
                  "WEIGHTED_MEAN": (weights * states).sum(0) / weights.sum()}[pooling]
        assert np.allclose(array(answer.pooled)[0], wanted, atol=1e-5), pooling


def test_binary_spans(client):
    sequences = [with_spans("the cat sat on the mat", [(0, 3), (3, 8)])] + texts("one cat")
    numbers = array(client.encode(request("prompts", sequences)).pooled)
    tensor = client.encode(request("prompts", sequences, dtype=pb.DTYPE_UBINARY)).pooled
    assert list(tensor.shape) == [3, 3]
    assert (np.frombuffer(tensor.data, np.uint8).reshape(3, 3) == np.packbits(numbers > 0, axis=1)).all()


def test_spans_over_http(server, client):
    body = {"model": "prompts", "prompt_name": "", "sequences": {"sequences": [
        {"text": "the cat sat", "spans": {"begins": [0, 2], "ends": [2, 5]}}]}, "outputs": {"pooled": {}}}
    answer = server.post_json("/attendant.v1.Encoder/Encode", body)
    wanted = client.encode(request("prompts", [with_spans("the cat sat", [(0, 2), (2, 5)])])).pooled
    assert base64.b64decode(answer["pooled"]["data"]) == wanted.data
    assert answer["sequences"][0]["spans"] == {"begins": [0, 2], "ends": [2, 5]}


def command(server, *arguments):
    done = subprocess.run([settings.bin_dir() / "attendant", "embed", "--model=prompts", "--no-prompt", *arguments,
                           f"--server={server.grpc}"], check=True, capture_output=True, text=True, timeout=DEADLINE)
    return done.stdout


def test_the_command_shows_chunks(server, client, tmp_path):
    inputs = ["the cat sat on the mat", "one cat"]
    answer = client.encode(request("prompts", texts(*inputs), chunk_tokens=4))
    wanted = array(answer.pooled)
    lines = [json.loads(line) for line in command(server, "--json", "--chunk_tokens=4", *inputs).splitlines()]
    assert np.array_equal(np.float32([line["embedding"] for line in lines]), wanted)
    chunks = [(index, chunk, span) for index, info in enumerate(answer.sequences)
              for chunk, span in enumerate(spans_of(info))]
    assert [(line["index"], line["chunk"], [line["begin"], line["end"]]) for line in lines] == chunks
    assert lines[0]["token_strings"][:2] == ["[CLS]", "the"]
    file = tmp_path / "chunks.npy"
    command(server, "--chunk_tokens=4", f"--output={file}", *inputs)
    assert np.array_equal(np.load(file), wanted)
    shown = command(server, "--chunk_tokens=4", *inputs).splitlines()
    assert len(shown) == len(wanted) and "[CLS] the" in shown[0]
    assert "[CLS]" in command(server, "--chunk_tokens=4", "--similarity", *inputs)
