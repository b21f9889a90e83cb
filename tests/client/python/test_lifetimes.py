# SPDX-License-Identifier: Apache-2.0
"""Calls that are closed, cancelled, beside others or run twice, and what a client refuses to send."""

import asyncio
import contextlib
import os
import signal
import threading
import time

import grpc
import pytest
from google.protobuf.message import EncodeError

import attendant
from attendant import closing, operations
from attendant.calls import Calls
from attendant.job import ENCODE, LIST_MODELS, Job, Request
from attendant.retry import Attempts
from attendant.v1 import encoder_pb2 as pb
from fake_server import embedding, fails

TEXTS = [f"text {i}" for i in range(8)]
PATIENCE = 60  # seconds for what takes a moment where the machine is not busy
LATER_MS = 100_000  # when a server asks for the next attempt


class Requests:
    """Counts requests that have come so far as a test waits for."""

    def __init__(self):
        self._arrived = threading.Semaphore(0)

    def arrive(self):
        self._arrived.release()

    def await_requests(self, number=1):
        for _ in range(number):
            assert self._arrived.acquire(timeout=PATIENCE), "the request does not come"

    def then(self, number, action, *arguments):
        """Does it on a thread when so many requests have come."""
        def run():
            self.await_requests(number)
            action(*arguments)

        threading.Thread(target=run).start()


class InWork(Requests):
    """A step of the script: requests that are in work until they are cancelled."""

    def __init__(self):
        super().__init__()
        self.cancelled = threading.Event()

    def __call__(self, _, context):
        if not context.add_callback(self.cancelled.set):
            self.cancelled.set()  # already before
        self.arrive()
        self.cancelled.wait(PATIENCE)


@contextlib.contextmanager
def raises_closed():
    """Of a client whose request_id is "mine"."""
    with pytest.raises(attendant.CancelledError) as caught:
        yield
    assert (str(caught.value), caught.value.request_id) == ("the client is closed", "mine")


def test_requests_of_one_call_are_bounded_not_those_of_the_client(fake):
    barrier = threading.Barrier(4)  # two calls of two requests each, all at once
    fake.script = [lambda *_: barrier.wait(PATIENCE)] * 4
    with attendant.Client(fake.target, model="m", max_concurrency=2) as client:
        threads = [threading.Thread(target=client.embed, args=(TEXTS,), kwargs={"batch_size": 4}) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert not barrier.broken and len(fake.requests) == 4


@pytest.mark.parametrize("failing", [0, 2, 6], ids=["first", "later", "last"])
def test_the_first_error_ends_the_call_and_cancels_the_others(fake, connect, failing):
    others = InWork()
    arrived = threading.Barrier(4)

    def fail_one(request, context):
        arrived.wait(PATIENCE)
        if request.sequences.sequences[0].text == TEXTS[failing]:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")
        others(request, context)

    fake.script = [fail_one] * 4
    start = time.monotonic()
    with connect(timeout=None) as client:
        with pytest.raises(attendant.InvalidArgumentError, match="no"):
            client.embed(TEXTS, batch_size=2)
        assert time.monotonic() - start < PATIENCE / 2
        assert others.cancelled.wait(PATIENCE / 2), "the server does not see that they were cancelled"


def test_an_error_ends_a_call_whose_other_request_is_to_be_sent_again(fake, connect):
    arrived = threading.Barrier(2)

    def step(request, context):
        arrived.wait(PATIENCE)
        if request.sequences.sequences[0].text == TEXTS[0]:
            fails(grpc.StatusCode.UNAVAILABLE, pushback_ms=LATER_MS)(request, context)
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")

    fake.script = [step] * 2
    start = time.monotonic()
    with connect(timeout=None) as client, pytest.raises(attendant.InvalidArgumentError, match="no"):
        client.embed(TEXTS, batch_size=4)
    assert time.monotonic() - start < LATER_MS / 1000


def test_answers_keep_the_order_of_their_inputs(fake, connect):
    others = threading.Semaphore(0)

    def last_comes_first(request, _):
        if request.sequences.sequences[0].text == TEXTS[0]:
            for _ in TEXTS[1:]:
                assert others.acquire(timeout=PATIENCE), "the first request keeps others from being sent"
        others.release()

    fake.script = [last_comes_first] * len(TEXTS)
    with connect(max_concurrency=2) as client:
        assert client.embed(TEXTS, batch_size=1).tolist() == [embedding(text) for text in TEXTS]


def test_a_request_is_sent_again_while_the_first_is_in_work(fake, connect):
    again = threading.Event()
    arrived = threading.Barrier(2)

    def step(request, context):
        arrived.wait(PATIENCE)
        if request.sequences.sequences[0].text == TEXTS[0]:
            assert again.wait(PATIENCE), "the second request is not sent again"
        else:
            fake.script = [lambda *_: again.set()]
            fails(grpc.StatusCode.UNAVAILABLE)(request, context)

    fake.script = [step] * 2
    with connect(timeout=None) as client:
        assert client.embed(TEXTS, batch_size=4).tolist() == [embedding(text) for text in TEXTS]
    assert again.is_set() and len(fake.requests) == 3


def test_an_interrupt_ends_a_call(fake, monkeypatch):
    in_work = InWork()
    fake.script = [in_work] * 2
    waits = threading.Event()
    wait = Calls.wait

    def wait_and_say(calls, most):
        if most == 0:  # all are sent
            waits.set()
        wait(calls, most)

    def interrupt():
        assert waits.wait(PATIENCE)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Calls, "wait", wait_and_say)
    with attendant.Client(fake.target, model="m", timeout=None) as client:
        in_work.then(2, interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.embed(TEXTS, batch_size=4)
        assert in_work.cancelled.wait(PATIENCE / 2), "the server does not see that they were cancelled"


def test_a_client_closes_after_an_interrupt_while_a_call_starts(fake, monkeypatch):
    """gRPC's own close() has no end then."""
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("grpc._channel._run_channel_spin_thread", interrupt)
    with attendant.Client(fake.target, model="m", timeout=None) as client:
        with pytest.raises(KeyboardInterrupt):
            client.embed("abc")
    with pytest.raises(attendant.CancelledError, match="the client is closed"):
        client.embed("abc")


def test_closing_a_client_cancels_its_calls(fake):
    in_work = InWork()
    fake.script = [in_work]
    client = attendant.Client(fake.target, model="m", timeout=None, request_id="mine")
    in_work.then(1, client.close)
    with raises_closed():
        client.embed("abc")
    with raises_closed():
        client.embed("abc")
    with raises_closed():
        list(client.stream([operations.embed("abc")]))


def test_closing_an_async_client_cancels_its_calls(fake):
    in_work = InWork()
    fake.script = [in_work]

    async def run():
        client = attendant.AsyncClient(fake.target, model="m", timeout=None, request_id="mine")
        call = asyncio.create_task(client.embed("abc"))
        await asyncio.to_thread(in_work.await_requests)
        await client.close()
        with raises_closed():
            await call
        with raises_closed():
            await client.embed("abc")
        with raises_closed():
            await anext(client.stream([operations.embed("abc")]))

    asyncio.run(run())


def test_a_client_is_closed_while_a_call_starts():
    closed = threading.Event()
    with raises_closed(), closing.open_channel(closed, "mine"):
        closed.set()
        raise ValueError("Cannot invoke RPC on closed channel!")


WAITS = {  # the requests that wait, and their call
    "call": (1, lambda client: client.embed("abc")),
    "call of two": (2, lambda client: client.embed(TEXTS, batch_size=4)),
    "stream": (1, lambda client: client.stream([operations.embed("abc")]))}


@pytest.fixture
def refused(fake, monkeypatch):
    """Requests whose refusal a client has read. The server asks for their next attempts much later."""
    fake.on_stream = fails(grpc.StatusCode.UNAVAILABLE, pushback_ms=LATER_MS)
    fake.script = [fake.on_stream] * 2
    requests = Requests()
    delay_after = Attempts.delay_after

    def counted(attempts, error):
        requests.arrive()
        return delay_after(attempts, error)

    monkeypatch.setattr(Attempts, "delay_after", counted)
    return requests


@pytest.mark.parametrize("number, wait", WAITS.values(), ids=WAITS)
def test_closing_a_client_ends_its_waits(fake, refused, number, wait):
    client = attendant.Client(fake.target, model="m", timeout=None, request_id="mine")
    start = time.monotonic()
    refused.then(number, client.close)
    with raises_closed():
        list(wait(client))
    assert time.monotonic() - start < LATER_MS / 1000


@pytest.mark.parametrize("number, wait", WAITS.values(), ids=WAITS)
def test_closing_an_async_client_ends_its_waits(fake, refused, number, wait):
    async def rows(client):
        waiting = wait(client)
        return [row async for row in waiting] if hasattr(waiting, "__aiter__") else await waiting

    async def run():
        client = attendant.AsyncClient(fake.target, model="m", timeout=None, request_id="mine")
        call = asyncio.create_task(rows(client))
        await asyncio.to_thread(refused.await_requests, number)
        await client.close()
        with raises_closed():
            await call

    start = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - start < LATER_MS / 1000


def test_a_cancelled_task_is_cancelled(fake):
    in_work = InWork()
    fake.script = [in_work]

    async def run():
        async with attendant.AsyncClient(fake.target, model="m", timeout=None) as client:
            call = asyncio.create_task(client.embed("abc"))
            await asyncio.to_thread(in_work.await_requests)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(run())


@pytest.mark.parametrize("close_first", [True, False])
def test_a_task_that_is_cancelled_with_its_client_is_cancelled(fake, close_first):
    in_work = InWork()
    fake.script = [in_work]

    async def run():
        client = attendant.AsyncClient(fake.target, model="m", timeout=None)
        call = asyncio.create_task(client.embed("abc"))
        await asyncio.to_thread(in_work.await_requests)
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


def test_options_are_shown_without_keys():
    with attendant.Client(model="m", api_key="secret", metadata={"x-key": "hidden"}) as client:
        shown = repr(client.options)
    assert shown.startswith("Options(model='m', ") and "traceparent=None" in shown
    assert not any(word in shown for word in ("api_key", "secret", "metadata", "x-key", "hidden"))


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
