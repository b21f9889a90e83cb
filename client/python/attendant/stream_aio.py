# SPDX-License-Identifier: Apache-2.0
"""Many jobs on one stream, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

import grpc

from attendant.choices import checked_count
from attendant.closing import closed_error, failure, pause
from attendant.errors import AttendantError, CancelledError, UnavailableError
from attendant.job import Job, Request, Rpc
from attendant.outbox import AsyncOutbox
from attendant.retry import Attempts
from attendant.window import Order, Outcome, Resend, Window, only_request

T = TypeVar("T")
Open = Callable[[Rpc, AsyncIterator[bytes]], Any]

_WRITE_AFTER_END = "Internal error from Core"  # grpc.aio's words for a message to a stream that the server has ended


def _ended(request_id: str) -> AttendantError:
    return UnavailableError("the server ended the stream", grpc.StatusCode.UNAVAILABLE, request_id)


async def _each(jobs: Iterable[Job[T]] | AsyncIterable[Job[T]]) -> AsyncIterator[Job[T]]:
    if isinstance(jobs, AsyncIterable):
        async for job in jobs:
            yield job
    else:
        for job in jobs:
            yield job


class _Answers:
    """A task that reads the answers of a call as they come: a server ends a stream whose client stops reading. As many wait
    here as the stream has in flight."""

    def __init__(self, call: Any, request_id: str) -> None:
        self._call, self._request_id = call, request_id
        self._read: asyncio.Queue[Any] = asyncio.Queue()  # last comes the error, or None
        self.task = asyncio.create_task(self._run())

    async def next(self) -> Any:
        """The next answer; None after the last."""
        answer = await self._read.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _run(self) -> None:
        try:
            async for answer in self._call:
                self._read.put_nowait(answer)
            self._read.put_nowait(None)
        except asyncio.CancelledError:  # of the call: who waits for answers is not cancelled
            self._read.put_nowait(CancelledError("the server cancelled the stream", request_id=self._request_id))
        except Exception as error:  # raised where the answers are taken
            self._read.put_nowait(error)


class _Feed(Generic[T]):
    """A task that reads jobs and sends them, at most `room` of them without an outcome that was taken. The first job decides
    the method: `rpc` is set when `started` is."""

    def __init__(self, jobs: Iterable[Job[T]] | AsyncIterable[Job[T]],
                 prepare: Callable[[Request[Any]], Awaitable[None]], window: Window[T], room: int,
                 request_id: str) -> None:
        self._jobs, self._prepare, self._window, self._request_id = jobs, prepare, window, request_id
        self.room = asyncio.Semaphore(room)
        self.started = asyncio.Event()
        self.rpc: Rpc | None = None
        self.fault: BaseException | None = None
        self._outbox = AsyncOutbox()
        self._call: Any = None
        self._answers: _Answers | None = None
        self._read_all = False
        self._task = asyncio.create_task(self._run())

    def connect(self, start: Open) -> _Answers:
        """The answers of a call that sends what is not answered, then the rest."""
        assert self.rpc is not None
        self._outbox.end()
        self._outbox = AsyncOutbox()
        for resend in self._window.unanswered():
            self._outbox.put(resend.payload, resend.delay)
        self._call = start(self.rpc, self._outbox.messages())
        self._end_if_done()
        self._answers = _Answers(self._call, self._request_id)
        return self._answers

    def take(self, answer: Any) -> Outcome[T] | None:
        """The outcome of a request; None: it is sent again."""
        taken = self._window.take(answer)
        if isinstance(taken, Resend):
            self._outbox.put(taken.payload, taken.delay)
            return None
        self._end_if_done()
        return taken

    def done(self) -> bool:
        return self._read_all and not self._window

    async def stop(self) -> None:
        tasks = [self._task] if self._answers is None else [self._task, self._answers.task]
        self._outbox.end()
        for task in tasks:
            task.cancel()
        if self._call is not None:
            self._call.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        try:
            async for job in _each(self._jobs):
                request = only_request(job, self.rpc)
                await self._prepare(request)
                await self.room.acquire()
                self._outbox.put(self._window.add(job, request))
                self.rpc = request.rpc
                self.started.set()
            self._read_all = True
            self._end_if_done()
        except BaseException as error:  # of the iterator: raised where the outcomes are read
            self.fault = error
            if self._call is not None:
                self._call.cancel()
            if not isinstance(error, Exception):  # this task may be cancelled itself
                raise
        finally:
            self.started.set()

    def _end_if_done(self) -> None:
        if self.done():
            self._outbox.end()


async def run_stream(jobs: Iterable[Job[T]] | AsyncIterable[Job[T]],
                     prepare: Callable[[Request[Any]], Awaitable[None]], start: Open,
                     closed: asyncio.Event, attempts: Callable[[], Attempts], request_id: str, room: int,
                     ordered: bool) -> AsyncGenerator[Outcome[T], None]:
    """The outcomes of the jobs. A stream that breaks is opened again after a pause of some seconds, and what was not
    answered is sent again."""
    checked_count("max_in_flight", room)
    feed = _Feed(jobs, prepare, Window[T](attempts, request_id), room, request_id)
    outcomes = _outcomes(feed, start, closed, attempts, Order[T](ordered), request_id)
    try:
        await feed.started.wait()
        async for outcome in outcomes:
            yield outcome
    finally:
        await outcomes.aclose()
        await feed.stop()


async def _outcomes(feed: _Feed[T], start: Open, closed: asyncio.Event, attempts: Callable[[], Attempts],
                    order: Order[T], request_id: str) -> AsyncGenerator[Outcome[T], None]:
    breaks = attempts()
    while not feed.done():
        if feed.fault is not None:
            raise feed.fault
        try:
            answers = feed.connect(start)
            while (answer := await answers.next()) is not None:
                breaks = attempts()
                taken = feed.take(answer)
                if taken is None:
                    continue
                for outcome in order.put(taken):
                    feed.room.release()
                    yield outcome
            if feed.done():
                return
            error = _ended(request_id)
        except grpc.RpcError as rpc_error:
            error = failure(rpc_error, closed, request_id)
            if str(error) == _WRITE_AFTER_END:
                error = _ended(request_id)
        except CancelledError as cancelled:
            error = closed_error(request_id) if closed.is_set() else cancelled
        if feed.fault is not None:
            raise feed.fault
        delay = breaks.delay_after(error)
        if delay is None:
            raise error
        await pause(closed, delay)
