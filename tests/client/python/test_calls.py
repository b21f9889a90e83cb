# SPDX-License-Identifier: Apache-2.0
"""Retries, deadlines, errors, metadata and splitting, against a server that fails as it is told."""

import contextlib
import functools
import pickle
import re
import socket
import threading
import time

import grpc
import numpy as np
import pytest

import attendant
import fake_server
from attendant.v1 import encoder_pb2 as pb
from fake_server import embedding, fails, model
from harness import settings

CODE = grpc.StatusCode


@pytest.mark.parametrize("code", [CODE.UNAVAILABLE, CODE.RESOURCE_EXHAUSTED])
def test_a_call_is_tried_again(fake, connect, code):
    fake.script = [fails(code)] * 3
    with connect() as client:
        assert client.embed("abc").tolist() == embedding("abc")
    assert len(fake.requests) == 4
    assert len({metadata["x-request-id"] for metadata in fake.metadata}) == 1


def test_the_attempts_are_counted(fake, connect):
    fake.script = [fails(CODE.UNAVAILABLE, f"failure {i}") for i in range(9)]
    with connect() as client, pytest.raises(attendant.UnavailableError, match="failure 3"):
        client.embed("abc")
    assert len(fake.requests) == 4


@pytest.mark.parametrize("code, error, builtin", [
    (CODE.INVALID_ARGUMENT, attendant.InvalidArgumentError, ValueError),
    (CODE.UNAUTHENTICATED, attendant.UnauthenticatedError, PermissionError),
    (CODE.PERMISSION_DENIED, attendant.PermissionDeniedError, PermissionError),
    (CODE.NOT_FOUND, attendant.NotFoundError, LookupError),
    (CODE.DEADLINE_EXCEEDED, attendant.DeadlineExceededError, TimeoutError),
    (CODE.UNIMPLEMENTED, attendant.UnimplementedError, NotImplementedError),
    (CODE.CANCELLED, attendant.CancelledError, Exception),
    (CODE.INTERNAL, attendant.InternalError, Exception),
    (CODE.DATA_LOSS, attendant.AttendantError, Exception)])
def test_other_errors_are_raised_at_once(fake, connect, code, error, builtin):
    fake.script = [fails(code, "the field, the value and the limit")]
    with connect(request_id="mine") as client, pytest.raises(error) as caught:
        client.embed("abc")
    assert isinstance(caught.value, builtin)
    assert (str(caught.value), caught.value.code, caught.value.request_id) == (
        "the field, the value and the limit", code, "mine")
    assert len(fake.requests) == 1
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.code, copy.request_id) == (error, str(caught.value), code, "mine")


@pytest.mark.parametrize("code", [CODE.UNAVAILABLE, CODE.RESOURCE_EXHAUSTED])
def test_the_server_says_when_to_come_back(fake, connect, code):
    fake.script = [fails(code, pushback_ms=300)]
    start = time.monotonic()
    with connect() as client:
        client.embed("abc")
    assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize("step", [fails(CODE.RESOURCE_EXHAUSTED, pushback_ms=-1),
                                  fails(CODE.RESOURCE_EXHAUSTED, pushback_ms="soon"),
                                  fails(CODE.RESOURCE_EXHAUSTED, pushback_ms="9" * 400),
                                  fails(CODE.RESOURCE_EXHAUSTED, "Received message larger than max (5 vs. 4)")])
def test_what_cannot_succeed_is_not_tried_again(fake, connect, step):
    fake.script = [step]
    with connect() as client, pytest.raises(attendant.ResourceExhaustedError):
        client.embed("abc")
    assert len(fake.requests) == 1


def test_the_timeout_holds_for_all_attempts(fake, connect, monkeypatch):
    """Each takes a hundred seconds, by a clock of the test."""
    fail = fails(CODE.UNAVAILABLE, pushback_ms=10)
    remaining = []

    def fail_late(request, context):
        remaining.append(context.time_remaining())
        fail(request, context)

    monkeypatch.setattr(attendant.base, "Attempts", functools.partial(
        attendant.retry.Attempts, clock=lambda: 100.0 * len(fake.requests)))
    fake.script = [fail_late] * 99
    with connect(timeout=350, retry=attendant.Retry(max_attempts=99)) as client:
        with pytest.raises(attendant.UnavailableError):
            client.embed("abc")
    assert len(fake.requests) == 4
    assert all(0 < seconds < 351 - 100 * attempt for attempt, seconds in enumerate(remaining)), remaining


def test_a_server_that_does_not_answer(fake, connect):
    released = threading.Event()
    fake.script = [lambda *_: released.wait(60)]
    with connect(timeout=3) as client, pytest.raises(attendant.DeadlineExceededError):
        client.embed("abc")
    released.set()


def test_the_server_sees_the_timeout(fake, connect):
    remaining = []
    fake.script = [lambda _, context: remaining.append(context.time_remaining())]
    with connect(timeout=60) as client:
        client.embed("abc")
    assert 0 < remaining[0] < 60.1  # on the wire gRPC rounds a timeout up


def test_a_server_that_is_not_there(connect, fake):
    fake.stop()
    with connect() as client, pytest.raises(attendant.UnavailableError):
        client.embed("abc")


def test_a_server_without_tls(fake, connect):
    with connect(tls=attendant.Tls()) as client:
        with pytest.raises(attendant.UnavailableError, match=r"\(the server speaks no TLS\)$"):
            client.embed("abc")


def test_a_server_that_ends_connections(connect, fake):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def end_each():
            with contextlib.suppress(OSError):
                while True:
                    listener.accept()[0].close()

        thread = threading.Thread(target=end_each)
        thread.start()
        fake.target = f"127.0.0.1:{listener.getsockname()[1]}"
        try:
            with connect() as client, pytest.raises(attendant.UnavailableError,
                                                    match=r"\(the server may need TLS, or "):
                client.embed("abc")
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_metadata(fake, connect):
    keys = iter(["first", "second"])
    options = {"api_key": lambda: next(keys), "traceparent": "00-1-2-01", "metadata": {"x-team": "search"}}
    with connect(priority=-7, **options) as client:
        client.embed("abc")
        client.embed("abc")
    first, second = fake.metadata
    assert first["authorization"] == "Bearer first" and second["authorization"] == "Bearer second"
    assert first["traceparent"] == "00-1-2-01" and first["x-team"] == "search"
    assert re.fullmatch("[0-9a-f]{32}", first["x-request-id"]) and first["x-request-id"] != second["x-request-id"]
    assert fake.requests[0].priority == -7


def test_options_of_requests(fake, connect):
    with connect(model_version=3) as client:
        client.embed("abc")
        with pytest.raises(attendant.InternalError):  # the fake server has no scores
            client.rerank("a", ["b"], model="other", pair_truncation="only_first", prompt_name="task")
    assert [(request.model, request.model_version) for request in fake.requests] == [("m", "3"), ("other", "3")]
    assert fake.requests[1].pair_truncation == pb.PAIR_TRUNCATION_ONLY_FIRST
    assert not fake.requests[0].HasField("prompt_name") and fake.requests[1].prompt_name == "task"


def test_the_only_model_is_asked_for_once(fake, connect):
    with connect(model=None) as client:
        client.embed("abc")
    assert fake.requests[0].model == "m"
    fake.models = [model("a"), model("b")]
    with connect(model=None) as client, pytest.raises(ValueError, match="2 models, name one of them: a, b"):
        client.embed("abc")
    fake.models[0].state = pb.MODEL_STATE_UNLOADED
    with connect(model=None) as client:
        client.embed("abc")
    assert fake.requests[-1].model == "b"
    fake.models = []
    with connect(model=None) as client, pytest.raises(LookupError, match="no models"):
        client.embed("abc")


def test_many_inputs_take_several_requests(fake, connect):
    texts = [f"text {i}" for i in range(100)] + ["x" * 700_000] * 2
    with connect() as client:
        rows = client.embed((text for text in texts), batch_size=8)
    assert np.array_equal(rows, np.float32([embedding(text) for text in texts]))
    sizes = sorted(len(request.sequences.sequences) for request in fake.requests)
    assert sizes == [1, 5] + [8] * 12


def test_an_error_names_the_inputs(fake, connect):
    def fail_third(request, context):
        first = int(request.sequences.sequences[0].text)
        if first == 16:
            context.abort(CODE.INVALID_ARGUMENT, "bad")
        elif first > 16:  # in work until the error cancels it: how many are sent before does not depend on the time
            cancelled = threading.Event()
            if context.add_callback(cancelled.set):
                cancelled.wait(60)

    fake.script = [fail_third] * 99
    with connect() as client, pytest.raises(ValueError, match=r"bad \(of inputs 16 to 23\)"):
        client.embed(map(str, range(1000)), batch_size=8)
    assert len(fake.requests) < 20


def test_no_inputs(connect):
    with connect() as client:
        assert client.embed([]).shape == (0, 0)
        assert client.rerank("a", []) == []


@pytest.mark.parametrize("call, error", [
    (lambda client: client.embed("a", pooling="average"), "pooling is 'average': it must be one of .*mean, cls, max, last"),
    (lambda client: client.rerank("a", ["b"], pair_truncation="first"), "must be one of unspecified, only_first, only_second"),
    (lambda client: client.embed("a", dtype="uint8"), "dtype is 'uint8': it must be one of .*int8, binary, ubinary"),
    (lambda client: client.encode("a", dtype="int8"), "dtype is 'int8'"),
    (lambda client: client.embed(["a"], batch_size=0), "batch_size is 0"),
    (lambda client: client.embed([("a", "b", "c")]), "a pair of two texts"),
    (lambda client: client.embed(["a", 5]), "an input is a text, .* not 5"),
    (lambda client: client.embed([b"abc"]), "an input is a text, .* not b'abc'"),
    (lambda client: client.embed([None]), "an input is a text, .* not None"),
    (lambda client: client.embed(np.arange(3)), "an input is a text, .* not .*0"),
    (lambda client: client.embed([[0.5]]), "token_ids must be integers"),
    (lambda client: client.embed([[[1]]]), r"token_ids has shape \[1, 1\]"),
    (lambda client: client.embed({"input_ids": [[1]]}), r"a mapping: PaddedBatch\(\*\*inputs\)"),
    (lambda client: client.encode({"input_ids": [[1]]}), r"a mapping: PaddedBatch\(\*\*inputs\)"),
    (lambda client: client.rerank("a", {"b": "c"}), "passages are a mapping"),
    (lambda client: client.embed(attendant.PaddedBatch(np.ones((2, 3), int), np.ones((3, 2), int))), "attention_mask has shape"),
    (lambda client: client.rerank("a", ["b"], top_k=-1), "top_k is -1"),
    (lambda client: client.encode("a", last_hidden_state=False), "needs an output"),
    (lambda client: client.attend(np.zeros((1, 2, 4)), kind="global"), "kind is 'global': it must be one of .*luong_dot"),
    (lambda client: client.attend(np.zeros((1, 2, 4)), kind="local", width=2), "no parameter 'width': it has window"),
    (lambda client: client.attend(*(list(map(np.ones, sizes)) for sizes in ([(1, 4)] * 2, [(1, 4), (2, 4)], [(2, 4), (1, 4)]))),
     "value has sequences of 2, 1 rows, key of 1, 2"),
    (lambda client: client.attend([np.ones((2, 4))], np.ones((2, 4)), weights="averaged"), "query and key are both"),
    (lambda client: client.attend(np.ones((1, 2, 4)), mask=np.ones((2, 2), int)), "mask is of int64: it must be of bool"),
])
def test_wrong_arguments_are_not_sent(fake, connect, call, error):
    with connect() as client, pytest.raises((ValueError, TypeError), match=error):
        call(client)
    assert not fake.requests


def test_an_answer_that_contradicts_itself(fake, connect, monkeypatch):
    encoded = fake_server.encoded

    def shortened(request):
        answer = encoded(request)
        if request.sequences.sequences[0].text == "abc":
            answer.pooled.shape[0] = 3
        return answer

    monkeypatch.setattr(fake_server, "encoded", shortened)
    with connect(request_id="mine") as client:
        with pytest.raises(attendant.InternalError, match=r"shape \[3, 2\] and 8 bytes$") as caught:
            client.embed("abc")
        assert (caught.value.code, caught.value.request_id) == (CODE.INTERNAL, "mine")
        with pytest.raises(attendant.InternalError, match=r"shape \[3, 2\] and 8 bytes \(of inputs 1 to 1\)$"):
            client.embed(["a", "abc"], batch_size=1)


@pytest.mark.parametrize("call", [
    lambda client: client.embed(["a", "b"]),
    lambda client: client.encode(["a", "b"], pooled=True),
    lambda client: client.rerank("a", ["b", "c"]),
    lambda client: client.classify(["a", "b"], labels=["x"]),
])
def test_answers_about_fewer_inputs(fake, connect, monkeypatch, call):
    row = pb.Tensor(dtype=pb.DTYPE_F32, shape=[1, 1], data=bytes(4))
    answer = pb.EncodeResponse(model="m", pooled=row, scores=row, last_hidden_state=row,
                               sequences=[pb.SequenceInfo(tokens=1)])
    monkeypatch.setattr(fake_server, "encoded", lambda request: answer)
    with connect() as client, pytest.raises(attendant.InternalError, match="has 1 sequences, the request 2"):
        call(client)


@pytest.mark.parametrize("call", [
    lambda client: client.embed(["a", "b"]),
    lambda client: client.rerank("a", ["b", "c"]),
])
def test_answers_with_fewer_rows_than_inputs(fake, connect, monkeypatch, call):
    row = pb.Tensor(dtype=pb.DTYPE_F32, shape=[1, 1], data=bytes(4))
    answer = pb.EncodeResponse(model="m", pooled=row, scores=row, sequences=[pb.SequenceInfo(tokens=1)] * 2)
    monkeypatch.setattr(fake_server, "encoded", lambda request: answer)
    with connect() as client, pytest.raises(attendant.InternalError, match=r"of shape \[1, 1\] for 2 sequences"):
        call(client)


def test_a_classifier_is_no_reranker(fake, connect, monkeypatch):
    def two_labels(request):
        count = len(request.sequences.sequences)
        scores = pb.Tensor(dtype=pb.DTYPE_F32, shape=[count, 2], data=bytes(8 * count))
        return pb.EncodeResponse(model="m", scores=scores, sequences=[pb.SequenceInfo(tokens=1)] * count)

    monkeypatch.setattr(fake_server, "encoded", two_labels)
    with connect() as client, pytest.raises(attendant.InvalidArgumentError, match="no reranker: it has 2 labels, not 1"):
        client.rerank("a", ["b", "c", "d"], batch_size=2)


def test_answers_of_different_widths(fake, connect, monkeypatch):
    def wide(request):
        rows = np.zeros((1, len(request.sequences.sequences[0].text)), "<f4")
        tensor = pb.Tensor(dtype=pb.DTYPE_F32, shape=rows.shape, data=rows.tobytes())
        return pb.EncodeResponse(model="m", pooled=tensor, sequences=[pb.SequenceInfo(tokens=1)])

    monkeypatch.setattr(fake_server, "encoded", wide)
    with connect() as client, pytest.raises(attendant.InternalError, match="the answers disagree"):
        client.embed(["a", "bc"], batch_size=1)


def test_thousands_of_attempts():
    attempts = attendant.retry.Attempts(attendant.Retry(max_attempts=3000), None)
    delays = [attempts.delay_after(attendant.UnavailableError("")) for _ in range(2999)]
    assert 2.5 <= min(delays[10:]) and max(delays) <= 5


def times_of_attempts(error, monkeypatch, chance, timeout):
    """When a call with the usual retries is sent that always fails so. Each wait is at its least where `chance` is 0, at its
    most where it is 1."""
    monkeypatch.setattr(attendant.retry.random, "uniform", lambda least, most: least + chance * (most - least))
    times = [0.0]
    attempts = attendant.retry.Attempts(attendant.Retry(), timeout, lambda: times[-1])
    while (delay := attempts.delay_after(error)) is not None:
        times.append(times[-1] + delay)
    return times


@pytest.mark.parametrize("chance", [0, 1])
@pytest.mark.parametrize("hint", [None, 0.001, 0.1, 4.0])
def test_the_usual_attempts_fill_the_usual_timeout(monkeypatch, hint, chance):
    error = attendant.ResourceExhaustedError("", retry_after=hint)
    timeout = attendant.Options().timeout
    longest_wait = max(attendant.Retry().max_delay, 1.5 * (hint or 0))
    assert times_of_attempts(error, monkeypatch, chance, timeout)[-1] >= timeout - longest_wait
    assert times_of_attempts(error, monkeypatch, chance, None)[-1] >= timeout


def test_clients_that_are_refused_together_come_back_apart():
    error = attendant.ResourceExhaustedError("", retry_after=2.0)
    delays = [attendant.retry.Attempts(attendant.Retry(), None).delay_after(error) for _ in range(1000)]
    assert 2 <= min(delays) < 2.1 and 2.9 < max(delays) <= 3


@pytest.mark.parametrize("call", [
    lambda client: client.embed_chunks("a", 1),
    lambda client: client.sparse("a"),
    lambda client: client.fill_mask("a"),
    lambda client: client.multi_vectors("a"),
    lambda client: client.classify_tokens("a", labels=["x"]),
    lambda client: client.word_weights("a"),
])
def test_answers_with_fewer_rows_than_they_say(fake, connect, monkeypatch, call):
    row = pb.Tensor(dtype=pb.DTYPE_F32, shape=[1, 1], data=bytes(4))
    answer = pb.EncodeResponse(
        model="m", pooled=row, multi_vectors=row, token_scores=row,
        sequences=[pb.SequenceInfo(tokens=2, spans=pb.TokenSpans(begins=[0, 1], ends=[1, 2]), sparse_weights=2,
                                   mask_tokens=[0, 1], vector_tokens=[0, 1], words=2, token_strings=["a", "b"])],
        words=pb.WordWeights(words=["b"], weights=pb.Tensor(dtype=pb.DTYPE_F32, shape=[1], data=bytes(4))),
        sparse=pb.SparseVectors(ids=[7], weights=pb.Tensor(dtype=pb.DTYPE_F32, shape=[1], data=bytes(4))),
        fill_mask=pb.MaskPredictions(scores=row, token_ids=[7], token_strings=["b"]))
    monkeypatch.setattr(fake_server, "encoded", lambda request: answer)
    with connect() as client, pytest.raises(attendant.InternalError, match=r"of shape \[1.*\], its sequences have \[2\]"):
        call(client)


def test_offsets_that_are_not_those_of_the_tokens(fake, connect, monkeypatch):
    answer = pb.EncodeResponse(model="m", sequences=[pb.SequenceInfo(
        tokens=2, offsets=pb.TokenOffsets(starts=[0, 1], ends=[1]))],
        last_hidden_state=pb.Tensor(dtype=pb.DTYPE_F32, shape=[2, 1], data=bytes(8)))
    monkeypatch.setattr(fake_server, "encoded", lambda request: answer)
    with connect() as client, pytest.raises(attendant.InternalError, match="2 starts and 1 ends of 2 tokens"):
        client.encode("ab", token_offsets=True)


def test_the_version_is_the_projects():
    project = (settings.ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert f"project(attendant VERSION {attendant.__version__} " in project
