# SPDX-License-Identifier: Apache-2.0
"""Many jobs on one stream: order, bounds, failures of a job, of the stream and of the reader of jobs."""

import asyncio
import itertools
import threading
import time

import grpc
import pytest

import attendant
from attendant import operations
from attendant.v1 import encoder_pb2 as pb
from fake_server import answer, embedding, refusal
from harness.server import wait_until

FAST = attendant.Retry(max_attempts=3, first_delay=0.001, max_delay=0.002)
TEXTS = [f"text {i}" for i in range(50)]


def blocking(fake, jobs, method="stream_outcomes", **options):
    with attendant.Client(fake.target, model="m", retry=FAST) as client:
        yield from getattr(client, method)(jobs, **options)


def awaited(fake, jobs, method="stream_outcomes", **options):
    async def collect():
        found = []
        async with attendant.AsyncClient(fake.target, model="m", retry=FAST) as client:
            async for each in getattr(client, method)(jobs, **options):
                found.append(each)
        return found
    return iter(asyncio.run(collect()))


@pytest.fixture(params=[blocking, awaited])
def run(request, fake):
    return lambda *arguments, **options: request.param(fake, *arguments, **options)


def jobs_of(texts):
    return (operations.embed(text) for text in texts)


def backwards(requests, _):
    """Answers ten requests at a time, the last one first."""
    while group := list(itertools.islice(requests, 10)):
        yield from map(answer, reversed(group))


def test_results_come_in_order_or_as_completed(fake, run):
    fake.on_stream = backwards
    assert [row.tolist() for row in run(jobs_of(TEXTS), "stream")] == [embedding(text) for text in TEXTS]
    outcomes = list(run(jobs_of(TEXTS)))
    assert [outcome.index for outcome in outcomes[:10]] == list(range(9, -1, -1))
    assert all(outcome.value.tolist() == embedding(TEXTS[outcome.index]) for outcome in outcomes)
    assert sorted(outcome.index for outcome in outcomes) == list(range(50))
    assert fake.streams == 2


def test_jobs_in_flight_are_bounded(fake, run):
    taken = itertools.count(1)
    read = []

    def counted():
        for text in TEXTS:
            read.append(next(taken))
            yield operations.embed(text)

    most = []

    def one_by_one(requests, _):
        for number, request in enumerate(requests):
            most.append(len(read) - number)
            yield answer(request)

    fake.on_stream = one_by_one
    assert len(list(run(counted(), max_in_flight=3))) == 50
    assert max(most) <= 3 + 2  # one is read and waits; one outcome is on its way


def test_a_failed_job_fails_alone(fake, run):
    def refuse_some(requests, _):
        for request in requests:
            bad = int(request.id) % 7 == 0
            yield refusal(request, grpc.StatusCode.INVALID_ARGUMENT) if bad else answer(request)

    fake.on_stream = refuse_some
    outcomes = list(run(jobs_of(TEXTS), ordered=True))
    assert [outcome.index for outcome in outcomes if outcome.error] == list(range(0, 50, 7))
    assert isinstance(outcomes[0].error, ValueError) and outcomes[0].error.request_id
    with pytest.raises(attendant.InvalidArgumentError):
        list(run(jobs_of(TEXTS), "stream"))


def test_an_answer_that_is_none_fails_alone(fake, run):
    fake.on_stream = lambda requests, _: (pb.EncodeStreamResponse(id=request.id) for request in requests)
    outcome, = run(jobs_of(TEXTS[:1]))
    assert isinstance(outcome.error, attendant.InternalError)
    assert outcome.error.code == grpc.StatusCode.INTERNAL and outcome.error.request_id


def test_refused_requests_are_sent_again(fake, run):
    times = {}

    def refuse_first(requests, _):
        for request in requests:
            times.setdefault(request.id, []).append(time.monotonic())
            full = request.id == "3" and len(times["3"]) == 1
            yield refusal(request, grpc.StatusCode.RESOURCE_EXHAUSTED, 200) if full else answer(request)

    fake.on_stream = refuse_first
    assert [row.tolist() for row in run(jobs_of(TEXTS), "stream")] == [embedding(text) for text in TEXTS]
    assert times["3"][1] - times["3"][0] >= 0.2

    def refuse(requests, _):
        for request in requests:
            yield refusal(request, grpc.StatusCode.RESOURCE_EXHAUSTED)

    fake.on_stream = refuse
    outcome, = run(jobs_of(TEXTS[:1]))
    assert isinstance(outcome.error, attendant.ResourceExhaustedError)


def test_refused_requests_wait_together(fake, run):
    times = {}

    def refuse_firsts(requests, _):
        for request in requests:
            times.setdefault(request.id, []).append(time.monotonic())
            full = int(request.id) < 20 and len(times[request.id]) == 1
            yield refusal(request, grpc.StatusCode.RESOURCE_EXHAUSTED, 1000) if full else answer(request)

    fake.on_stream = refuse_firsts
    assert sorted(outcome.value.tolist() for outcome in run(jobs_of(TEXTS))) == sorted(map(embedding, TEXTS))
    waits = [seconds[1] - seconds[0] for seconds in times.values() if len(seconds) == 2]
    assert len(waits) == 20 and min(waits) >= 1
    assert max(waits) < 20 / 2  # one after another they take 20


class Stubborn:
    """Asks for a minute before the first request comes again, and answers the others."""

    def __init__(self):
        self.asked = 0

    def __call__(self, requests, _):
        for request in requests:
            first = request.id == "0"
            self.asked += first
            yield refusal(request, grpc.StatusCode.UNAVAILABLE, 60_000) if first else answer(request)


def test_answers_come_while_a_refused_request_waits(fake):
    fake.on_stream = server = Stubborn()
    before = set(threading.enumerate())
    with attendant.Client(fake.target, model="m") as client:
        outcomes = client.stream_outcomes(jobs_of(TEXTS), max_in_flight=2)
        assert [outcome.index for outcome in itertools.islice(outcomes, 49)] == list(range(1, 50))
        outcomes.close()
        wait_until("the end of its threads", 30, lambda: all(
            "ThreadPool" in thread.name for thread in set(threading.enumerate()) - before))
    assert server.asked == 1


def test_async_answers_come_while_a_refused_request_waits(fake):
    fake.on_stream = server = Stubborn()

    async def collect():
        async with attendant.AsyncClient(fake.target, model="m") as client:
            outcomes = client.stream_outcomes(jobs_of(TEXTS), max_in_flight=2)
            assert [(await anext(outcomes)).index for _ in range(49)] == list(range(1, 50))
            await outcomes.aclose()
        end = time.monotonic() + 30
        while len(asyncio.all_tasks()) > 1:
            assert time.monotonic() < end
            await asyncio.sleep(0)

    asyncio.run(collect())
    assert server.asked == 1


def test_a_refused_request_waits_also_when_the_stream_breaks(fake, run):
    times = []

    def refuse_first_and_end(requests, _):
        for request in requests:
            if request.id == "0":
                times.append(time.monotonic())
            if request.id == "0" and len(times) == 1:
                yield refusal(request, grpc.StatusCode.RESOURCE_EXHAUSTED, 300)
            elif request.id == "7" and fake.streams == 1:
                return
            else:
                yield answer(request)

    fake.on_stream = refuse_first_and_end
    assert [row.tolist() for row in run(jobs_of(TEXTS), "stream")] == [embedding(text) for text in TEXTS]
    assert fake.streams == 2 and len(times) == 2 and times[1] - times[0] >= 0.3


def test_a_hint_has_a_bound(fake, run, monkeypatch):
    monkeypatch.setattr(attendant.retry, "LONGEST_WAIT", 0.01)
    asked = set()

    def refuse_first(requests, _):
        for request in requests:
            first = request.id not in asked
            asked.add(request.id)
            yield refusal(request, grpc.StatusCode.RESOURCE_EXHAUSTED, 10**15) if first else answer(request)

    fake.on_stream = refuse_first
    assert [row.tolist() for row in run(jobs_of(TEXTS[:2]), "stream")] == [embedding(text) for text in TEXTS[:2]]


@pytest.mark.parametrize("broken", [
    lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, "draining"), lambda context: None])
def test_a_broken_stream_is_opened_again(fake, run, broken):
    def break_after_five(requests, context):
        yield from map(answer, itertools.islice(requests, 5))
        if fake.streams <= 6:
            return broken(context)
        yield from map(answer, requests)

    fake.on_stream = break_after_five
    assert [row.tolist() for row in run(jobs_of(TEXTS), "stream")] == [embedding(text) for text in TEXTS]
    assert fake.streams == 7


def test_a_stream_that_stays_broken(fake, run):
    fake.on_stream = lambda requests, context: context.abort(grpc.StatusCode.UNAVAILABLE, "down")
    with pytest.raises(attendant.UnavailableError, match="down|ended the stream"):  # grpc.aio may lose the words
        list(run(jobs_of(TEXTS)))
    assert fake.streams == 3


def test_a_reader_of_jobs_that_fails(fake, run):
    def jobs():
        yield operations.embed("a")
        raise KeyError("mine")

    fake.on_stream = lambda requests, _: map(answer, requests)
    with pytest.raises(KeyError, match="mine"):
        list(run(jobs()))


def test_no_jobs(fake, run):
    assert list(run([])) == [] and fake.streams == 0


@pytest.mark.parametrize("jobs, error", [
    (lambda: [operations.embed(["a", "b"], batch_size=1)], "jobs of one request"),
    (lambda: [operations.embed([])], "has no inputs"),
    (lambda: [operations.models()], "has no stream"),
    (lambda: [operations.embed("a"), operations.attend([[[1.0]]])], "takes no /attendant.v1.Attention/Attend")])
def test_jobs_that_a_stream_does_not_take(fake, run, jobs, error):
    fake.on_stream = lambda requests, _: map(answer, requests)
    with pytest.raises(ValueError, match=error):
        list(run(jobs()))


@pytest.mark.parametrize("jobs", [lambda: ["a"], lambda: [None], lambda: [operations.embed("a"), "b"]])
def test_what_is_no_job(fake, run, jobs):
    fake.on_stream = lambda requests, _: map(answer, requests)
    with pytest.raises(TypeError, match="a stream takes jobs of attendant.operations, .* not "):
        list(run(jobs()))


def test_a_stream_that_is_given_up_ends_its_thread(fake):
    fake.on_stream = lambda requests, _: map(answer, requests)
    with attendant.Client(fake.target, model="m") as client:
        outcomes = client.stream_outcomes(operations.embed("a") for _ in itertools.count())
        next(outcomes)
        outcomes.close()
        wait_until("the end of its thread", 30, lambda: all(
            thread.name != "attendant-stream" for thread in threading.enumerate()))


@pytest.fixture
def written(fake):
    """An event: the server has written answers of 64 MiB, more than gRPC takes for a client that does not read."""
    done = threading.Event()

    def answer_at_length(requests, _):
        for request in requests:
            message = answer(request)
            message.response.pooled.CopyFrom(pb.Tensor(dtype=pb.DTYPE_F32, shape=[1, 1 << 20], data=bytes(4 << 20)))
            yield message
            if request.id == "15":
                done.set()

    fake.on_stream = answer_at_length
    return done


def test_answers_are_read_while_the_caller_pauses(fake, written):
    with attendant.Client(fake.target, model="m") as client:
        rows = client.stream(jobs_of(TEXTS[:16]))
        next(rows)
        assert written.wait(60)
        assert len(list(rows)) == 15


def test_async_answers_are_read_while_the_caller_pauses(fake, written):
    async def collect():
        async with attendant.AsyncClient(fake.target, model="m") as client:
            rows = client.stream(jobs_of(TEXTS[:16]))
            await anext(rows)
            assert await asyncio.to_thread(written.wait, 60)
            return len([row async for row in rows])

    assert asyncio.run(collect()) == 15


def test_max_in_flight_bounds_what_is_read_ahead(fake):
    asked = []
    ahead = []  # at each answer: how many more than rows are asked for were answered

    def count(requests, _):
        for number, request in enumerate(requests, 1):
            ahead.append(number - len(asked))
            yield answer(request)

    fake.on_stream = count
    with attendant.Client(fake.target, model="m") as client:
        rows = client.stream(jobs_of(TEXTS), max_in_flight=4)
        for text in TEXTS:
            asked.append(text)
            next(rows)
            wait_until("answers to all that have room", 30, lambda: len(ahead) >= min(50, 4 + len(asked)))
        assert not list(rows)
    assert max(ahead) <= 4


def test_closing_an_async_client_ends_its_stream(fake):
    fake.on_stream = lambda requests, _: map(answer, requests)

    async def jobs():
        yield operations.embed("a")
        await asyncio.sleep(60)

    async def run():
        client = attendant.AsyncClient(fake.target, model="m", request_id="mine")
        rows = client.stream(jobs())
        await anext(rows)
        await client.close()
        with pytest.raises(attendant.CancelledError, match="^the client is closed$") as caught:
            await anext(rows)
        assert caught.value.request_id == "mine"

    asyncio.run(run())


def test_closing_a_client_ends_its_stream(fake):
    released = threading.Event()

    def jobs():
        yield operations.embed("a")
        released.wait(60)

    fake.on_stream = lambda requests, _: map(answer, requests)
    client = attendant.Client(fake.target, model="m", request_id="mine")
    rows = client.stream(jobs())
    next(rows)
    client.close()
    with pytest.raises(attendant.CancelledError, match="^the client is closed$") as caught:
        next(rows)
    assert caught.value.request_id == "mine"
    released.set()


def test_async_jobs(fake):
    async def jobs():
        for text in TEXTS:
            await asyncio.sleep(0)
            yield operations.embed(text)

    fake.on_stream = backwards
    assert [row.tolist() for row in awaited(fake, jobs(), "stream")] == [embedding(text) for text in TEXTS]
