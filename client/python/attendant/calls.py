# SPDX-License-Identifier: Apache-2.0
"""The requests of one call of the blocking client."""

from __future__ import annotations

import heapq
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

import grpc

from attendant.base import parsed
from attendant.closing import closed_error, failure
from attendant.job import Request
from attendant.retry import Attempts


@dataclass
class Call:
    """`send` starts an attempt with a timeout in seconds, and returns its future."""

    request: Request[Any]
    request_id: str
    attempts: Attempts
    send: Callable[[float | None], Any]
    future: Any = None


class Calls:
    """Requests in work at the same time, on no threads of this client's own: a forked process has none of those. Not
    thread-safe."""

    def __init__(self, closed: Event) -> None:
        self._closed = closed  # of the client
        self.results: list[Any] = []  # in the order of the requests; None where there is none yet
        self._running: dict[int, Call] = {}  # by their places in `results`
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()  # attempts, as threads of gRPC say
        self._delayed: list[tuple[float, int]] = []  # a heap: when to send which again, of time.monotonic()

    def add(self, call: Call) -> None:
        index = len(self.results)
        self._send(index, call)
        self._running[index] = call
        self.results.append(None)

    def wait(self, most: int) -> None:
        """Until at most so many are in work. Raises the first error."""
        while True:
            while self._delayed and self._delayed[0][0] <= time.monotonic():
                index = heapq.heappop(self._delayed)[1]
                self._send(index, self._running[index])
            pause = max(0.0, self._delayed[0][0] - time.monotonic()) if self._delayed else None
            full = len(self._running) > most
            if full and len(self._delayed) == len(self._running):  # close() finds none at gRPC to end
                if self._closed.wait(pause):
                    raise closed_error(self._running[self._delayed[0][1]].request_id)
                continue
            try:
                self._take(self._ended.get(full, pause))
            except queue.Empty:
                if not full:
                    return

    def cancel(self) -> None:
        for call in self._running.values():
            call.future.cancel()

    def _send(self, index: int, call: Call) -> None:
        call.future = call.send(call.attempts.remaining())
        call.future.add_done_callback(lambda _: self._ended.put(index))

    def _take(self, index: int) -> None:
        """The result of an attempt that ended. An error is raised where there is no next attempt."""
        call = self._running[index]
        try:
            self.results[index] = parsed(call.request, call.future.result(), call.request_id)
            del self._running[index]
            return
        except grpc.RpcError as rpc_error:
            error = failure(rpc_error, self._closed, call.request_id, call.request.part)
        delay = call.attempts.delay_after(error)
        if delay is None:
            raise error
        heapq.heappush(self._delayed, (time.monotonic() + delay, index))
