# SPDX-License-Identifier: Apache-2.0
"""Streams that end before their jobs: by a job that fails, or by the reader of jobs."""

import asyncio
import itertools
import threading

import grpc
import pytest

import attendant
from attendant import operations
from fake_server import answer, refusal
from harness.server import wait_until


def test_a_failed_job_ends_the_stream_while_its_error_is_kept(fake):
    read = []

    def jobs():
        for number in itertools.count():
            read.append(number)
            yield operations.embed("a")

    fake.on_stream = lambda requests, _: (refusal(request, grpc.StatusCode.INVALID_ARGUMENT) for request in requests)
    with attendant.Client(fake.target, model="m") as client:
        rows = client.stream(jobs(), max_in_flight=2)
        with pytest.raises(attendant.InvalidArgumentError) as kept:
            next(rows)
        wait_until("the end of its thread", 30, lambda: all(
            thread.name != "attendant-stream" for thread in threading.enumerate()))
        assert kept.value.__traceback__ is not None
        assert len(read) <= 2 + 2  # one waits; one that was taken made room
        assert list(rows) == []


@pytest.mark.parametrize("before", [0, 1])
def test_a_reader_of_jobs_whose_task_was_cancelled(fake, before):
    fake.on_stream = lambda requests, _: map(answer, requests)

    async def jobs():
        for _ in range(before):
            yield operations.embed("a")
        source = asyncio.create_task(asyncio.sleep(60))
        source.cancel("by somebody else")
        await source

    async def consume():
        async with attendant.AsyncClient(fake.target, model="m") as client:
            async for _ in client.stream(jobs()):
                pass

    async def run():
        with pytest.raises(asyncio.CancelledError, match="by somebody else"):
            await asyncio.wait_for(consume(), 60)

    asyncio.run(run())


def test_a_cancelled_reader_of_outcomes_is_cancelled(fake):
    fake.on_stream = lambda requests, _: map(answer, requests)
    ended = []

    async def jobs():
        yield operations.embed("a")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("jobs")
            raise

    async def run():
        first = asyncio.Event()

        async def consume():
            async with attendant.AsyncClient(fake.target, model="m") as client:
                async for _ in client.stream(jobs()):
                    first.set()

        task = asyncio.create_task(consume())
        await first.wait()
        task.cancel("by its owner")
        with pytest.raises(asyncio.CancelledError, match="by its owner"):
            await task
        assert ended == ["jobs"]

        async def others_end():  # gRPC's own tasks end a little after their call
            while asyncio.all_tasks() - {asyncio.current_task(), this}:
                await asyncio.sleep(0)

        this = asyncio.current_task()
        await asyncio.wait_for(others_end(), 60)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
