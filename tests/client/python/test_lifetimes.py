# SPDX-License-Identifier: Apache-2.0
"""Calls that are closed, cancelled, beside others or run twice, and what a client refuses to send."""

import asyncio
import os
import signal
import threading
import time

import grpc
import pytest
from google.protobuf.message import EncodeError

import attendant
from attendant import operations
from attendant.job import ENCODE, LIST_MODELS, Job, Request
from attendant.v1 import encoder_pb2 as pb
from fake_server import embedding, fails

TEXTS = [f"text {i}" for i in range(8)]


def waits(released):
    def step(_, context):
        context.add_callback(released.set)
        released.wait(20)
    return step


def test_requests_of_one_call_are_bounded_not_those_of_the_client(fake):
    barrier = threading.Barrier(4)  # two calls of two requests each, all at once
    fake.script = [lambda *_: barrier.wait(20)] * 4
    with attendant.Client(fake.target, model="m", max_concurrency=2) as client:
        threads = [threading.Thread(target=client.embed, args=(TEXTS,), kwargs={"batch_size": 4}) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert not barrier.broken and len(fake.requests) == 4


@pytest.mark.parametrize("failing", [0, 2, 6], ids=["first", "later", "last"])
def test_the_first_error_ends_the_call_and_cancels_the_others(fake, connect, failing):
    released = threading.Event()
    arrived = threading.Barrier(4)

    def fail_one(request, context):
        arrived.wait(20)
        if request.sequences.sequences[0].text == TEXTS[failing]:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")
        waits(released)(request, context)

    fake.script = [fail_one] * 4
    start = time.monotonic()
    with connect(timeout=30) as client:
        with pytest.raises(attendant.InvalidArgumentError, match="no"):
            client.embed(TEXTS, batch_size=2)
        assert released.wait(10), "the server does not see that they were cancelled"
    assert time.monotonic() - start < 15


def test_an_error_ends_a_call_whose_other_request_is_to_be_sent_again(fake, connect):
    arrived = threading.Barrier(2)

    def step(request, context):
        arrived.wait(20)
        if request.sequences.sequences[0].text == TEXTS[0]:
            fails(grpc.StatusCode.UNAVAILABLE, pushback_ms=20_000)(request, context)
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")

    fake.script = [step] * 2
    start = time.monotonic()
    with connect(timeout=30) as client, pytest.raises(attendant.InvalidArgumentError, match="no"):
        client.embed(TEXTS, batch_size=4)
    assert time.monotonic() - start < 15


def test_answers_keep_the_order_of_their_inputs(fake, connect):
    others = threading.Semaphore(0)

    def last_comes_first(request, _):
        if request.sequences.sequences[0].text == TEXTS[0]:
            for _ in TEXTS[1:]:
                assert others.acquire(timeout=20), "the first request keeps others from being sent"
        others.release()

    fake.script = [last_comes_first] * len(TEXTS)
    with connect(max_concurrency=2) as client:
        assert client.embed(TEXTS, batch_size=1).tolist() == [embedding(text) for text in TEXTS]


def test_a_request_is_sent_again_while_the_first_is_in_work(fake, connect):
    again = threading.Event()

    def step(request, context):
        if request.sequences.sequences[0].text == TEXTS[0]:
            assert again.wait(20), "the second request is not sent again"
        else:
            fake.script = [lambda *_: again.set()]
            fails(grpc.StatusCode.UNAVAILABLE)(request, context)

    fake.script = [step] * 2
    with connect(timeout=30) as client:
        assert client.embed(TEXTS, batch_size=4).tolist() == [embedding(text) for text in TEXTS]
    assert again.is_set() and len(fake.requests) == 3


def test_an_interrupt_ends_a_call(fake):
    released = threading.Event()
    fake.script = [waits(released)] * 2
    with attendant.Client(fake.target, model="m") as client:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            client.embed(TEXTS, batch_size=4)
        assert released.wait(10), "the server does not see that they were cancelled"


def test_closing_a_client_cancels_its_calls(fake):
    released = threading.Event()
    fake.script = [waits(released)]
    client = attendant.Client(fake.target, model="m")
    threading.Timer(0.3, client.close).start()
    with pytest.raises(attendant.CancelledError):
        client.embed("abc")
    with pytest.raises(attendant.CancelledError, match="closed"):
        client.embed("abc")
    with pytest.raises(attendant.CancelledError, match="closed"):
        list(client.stream([operations.embed("abc")]))


def test_closing_an_async_client_cancels_its_calls(fake):
    fake.script = [waits(threading.Event())]

    async def run():
        client = attendant.AsyncClient(fake.target, model="m")
        call = asyncio.create_task(client.embed("abc"))
        await asyncio.sleep(0.3)
        await client.close()
        with pytest.raises(attendant.CancelledError):
            await call
        with pytest.raises(attendant.CancelledError, match="closed"):
            await client.embed("abc")

    asyncio.run(run())


WAITS = {
    "call": lambda client: client.embed("abc"),
    "call of two": lambda client: client.embed(TEXTS, batch_size=4),
    "stream": lambda client: client.stream([operations.embed("abc")])}


@pytest.fixture
def refusing(fake):
    """A server that asks for the next attempt in 20 seconds."""
    fake.on_stream = fails(grpc.StatusCode.UNAVAILABLE, pushback_ms=20_000)
    fake.script = [fake.on_stream] * 2
    return fake


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_closing_a_client_ends_its_waits(refusing, wait):
    client = attendant.Client(refusing.target, model="m")
    start = time.monotonic()
    threading.Timer(0.3, client.close).start()
    with pytest.raises(attendant.CancelledError, match="closed"):
        list(wait(client))
    assert time.monotonic() - start < 15


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_closing_an_async_client_ends_its_waits(refusing, wait):
    async def rows(client):
        waiting = wait(client)
        return [row async for row in waiting] if hasattr(waiting, "__aiter__") else await waiting

    async def run():
        client = attendant.AsyncClient(refusing.target, model="m")
        call = asyncio.create_task(rows(client))
        await asyncio.sleep(0.3)
        await client.close()
        with pytest.raises(attendant.CancelledError, match="closed"):
            await call

    start = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - start < 15


def test_a_cancelled_task_is_cancelled(fake):
    fake.script = [waits(threading.Event())]

    async def run():
        async with attendant.AsyncClient(fake.target, model="m") as client:
            call = asyncio.create_task(client.embed("abc"))
            await asyncio.sleep(0.3)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(run())


@pytest.mark.parametrize("close_first", [True, False])
def test_a_task_that_is_cancelled_with_its_client_is_cancelled(fake, close_first):
    fake.script = [waits(threading.Event())]

    async def run():
        client = attendant.AsyncClient(fake.target, model="m")
        call = asyncio.create_task(client.embed("abc"))
        await asyncio.sleep(0.3)
        if close_first:
            await client.close()
            call.cancel()
        else:
            call.cancel()
            await client.close()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(run())


def test_each_attempt_asks_for_the_key(fake):
    keys = iter(["old\n", "new"])
    fake.script = [fails(grpc.StatusCode.UNAVAILABLE)]
    retry = attendant.Retry(first_delay=0.001, max_delay=0.002)
    with attendant.Client(fake.target, model="m", retry=retry, api_key=lambda: next(keys)) as client:
        assert client.embed("abc").tolist() == embedding("abc")
    assert [metadata["authorization"] for metadata in fake.metadata] == ["Bearer old", "Bearer new"]
    assert len({metadata["x-request-id"] for metadata in fake.metadata}) == 1


def test_headers_lose_the_white_space_around_them(fake):
    with attendant.Client(fake.target, model="m", request_id="abc\n", metadata={"team": "x\n"}, traceparent=" t ") as client:
        client.embed("abc")
        client.with_options(request_id="\n").embed("abc")
    first, second = fake.metadata
    assert (first["x-request-id"], first["team"], first["traceparent"]) == ("abc", "x", "t")
    assert len(second["x-request-id"]) == 32 and second["team"] == "x"


@pytest.mark.parametrize("options, name", [
    ({"api_key": "a\nb"}, "api_key"), ({"api_key": "kéy"}, "api_key"), ({"traceparent": "\x00"}, "traceparent"),
    ({"request_id": "é"}, "request_id"), ({"metadata": {"Team": "x"}}, "metadata"),
    ({"metadata": {"team": "é"}}, "metadata")])
def test_headers_that_cannot_be_sent_are_named(fake, options, name):
    with pytest.raises(ValueError, match=name) as caught:
        attendant.Client(fake.target, model="m", **options).embed("abc")
    assert not isinstance(caught.value, attendant.AttendantError)
    assert not fake.requests


class Unserializable:
    """A message that protobuf cannot write, as one that is too large."""

    def SerializeToString(self):  # pylint: disable=invalid-name  # protobuf's name
        raise EncodeError("too large")


def test_a_request_that_cannot_be_serialized(fake, connect):
    sent = Request(ENCODE, pb.EncodeRequest(model="m"), lambda answer: answer)
    unsent = Request(LIST_MODELS, Unserializable(), lambda answer: answer, "inputs 1 to 2")
    with connect(request_id="abc") as client:
        with pytest.raises(attendant.InvalidArgumentError, match=r"serialized: too large \(of inputs 1 to 2\)$") as caught:
            client.run(Job([sent, unsent], list))
    assert caught.value.request_id == "abc"


def test_a_job_is_for_one_run(fake):
    job = operations.embed(TEXTS, batch_size=4)
    with attendant.Client(fake.target, model="m") as client:
        assert len(client.run(job)) == len(TEXTS)
        with pytest.raises(RuntimeError, match="make the job anew"):
            client.run(job)


def test_one_text_is_no_list():
    with pytest.raises(TypeError, match="passages"):
        operations.rerank("query", "passage")
    with pytest.raises(TypeError, match="labels"):
        operations.classify(["text"], labels="joy")


def test_no_request_at_a_time():
    for client in (attendant.Client, attendant.AsyncClient):
        with pytest.raises(ValueError, match="max_concurrency"):
            client(max_concurrency=0)
