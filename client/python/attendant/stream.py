# SPDX-License-Identifier: Apache-2.0
"""Many jobs on one stream, blocking."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Generic, TypeVar

import grpc

from attendant.choices import checked_count
from attendant.closing import failure
from attendant.errors import AttendantError, UnavailableError
from attendant.job import Job, Request, Rpc
from attendant.outbox import Outbox
from attendant.retry import Attempts
from attendant.window import Order, Outcome, Resend, Window, only_request

T = TypeVar("T")
Open = Callable[[Rpc, Iterator[bytes]], Any]  # starts a call that sends these messages


class _Answers:
    """A thread that reads the answers of a call as they come: a server ends a stream whose client stops reading. As many
    wait here as the stream has in flight."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._read: queue.SimpleQueue[Any] = queue.SimpleQueue()  # last comes the error, or None
        threading.Thread(target=self._run, name="attendant-answers", daemon=True).start()

    def __iter__(self) -> Iterator[Any]:
        while (answer := self._read.get()) is not None:
            if isinstance(answer, BaseException):
                raise answer
            yield answer

    def _run(self) -> None:
        try:
            for answer in self._call:
                self._read.put(answer)
            self._read.put(None)
        except BaseException as error:  # raised where the answers are taken
            self._read.put(error)


class _Feed(Generic[T]):
    """A thread that reads jobs and sends them, at most `room` of them without an outcome that was taken."""

    def __init__(self, jobs: Iterator[Job[T]], prepare: Callable[[Request[Any]], None], rpc: Rpc, window: Window[T],
                 room: int) -> None:
        self._jobs, self._prepare, self._rpc, self._window = jobs, prepare, rpc, window
        self._room = threading.Semaphore(room)
        self._lock = threading.Lock()
        self._outbox = Outbox()
        self._read_all = self._stopped = False
        self._call: Any = None
        self.fault: BaseException | None = None
        threading.Thread(target=self._run, name="attendant-stream", daemon=True).start()

    def connect(self, start: Open) -> _Answers:
        """The answers of a call that sends what is not answered, then the rest."""
        with self._lock:
            self._outbox.end()
            self._outbox = Outbox()
            for resend in self._window.unanswered():
                self._outbox.put(resend.payload, resend.delay)
            self._call = start(self._rpc, self._outbox.messages())
            self._end_if_done()
            if self.fault is not None:
                self._call.cancel()
            return _Answers(self._call)

    def take(self, answer: Any) -> Outcome[T] | None:
        """The outcome of a request; None: it is sent again."""
        with self._lock:
            taken = self._window.take(answer)
            if isinstance(taken, Resend):
                self._outbox.put(taken.payload, taken.delay)
                return None
            self._end_if_done()
            return taken

    def done(self) -> bool:
        with self._lock:
            return self._read_all and not self._window

    def make_room(self) -> None:
        self._room.release()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._outbox.end()
            if self._call is not None:
                self._call.cancel()
        self._room.release()

    def _run(self) -> None:
        try:
            for job in self._jobs:
                request = only_request(job, self._rpc)
                self._prepare(request)
                self._room.acquire()
                with self._lock:
                    if self._stopped:
                        return
                    self._outbox.put(self._window.add(job, request))
            with self._lock:
                self._read_all = True
                self._end_if_done()
        except BaseException as error:  # of the iterator: raised where the outcomes are read
            with self._lock:
                self.fault = error
                if self._call is not None:
                    self._call.cancel()

    def _end_if_done(self) -> None:
        if self._read_all and not self._window:
            self._outbox.end()


def run_stream(jobs: Iterable[Job[T]], prepare: Callable[[Request[Any]], None], start: Open,
               closed: threading.Event, attempts: Callable[[], Attempts], request_id: str, room: int,
               ordered: bool) -> Generator[Outcome[T], None, None]:
    """The outcomes of the jobs. A stream that breaks is opened again after a pause of some seconds, and what was not
    answered is sent again."""
    checked_count("max_in_flight", room)
    iterator = iter(jobs)
    for first in iterator:
        break
    else:
        return
    request = only_request(first, None)
    first = Job([request], first.join)
    order = Order[T](ordered)
    feed = _Feed(itertools.chain([first], iterator), prepare, request.rpc, Window[T](attempts, request_id), room)
    try:
        yield from _outcomes(feed, start, closed, attempts, order, request_id)
    finally:
        feed.stop()


def _outcomes(feed: _Feed[T], start: Open, closed: threading.Event, attempts: Callable[[], Attempts],
              order: Order[T], request_id: str) -> Iterator[Outcome[T]]:
    breaks = attempts()
    while True:
        answers = feed.connect(start)
        try:
            for answer in answers:
                breaks = attempts()
                taken = feed.take(answer)
                if taken is None:
                    continue
                for outcome in order.put(taken):
                    feed.make_room()
                    yield outcome
            if feed.done():
                return
            error: AttendantError = UnavailableError("the server ended the stream", grpc.StatusCode.UNAVAILABLE, request_id)
        except grpc.RpcError as rpc_error:
            error = failure(rpc_error, closed, request_id)
        if feed.fault is not None:
            raise feed.fault
        delay = breaks.delay_after(error)
        if delay is None:
            raise error
        closed.wait(delay)
