# SPDX-License-Identifier: Apache-2.0
"""The messages of a stream that are to be sent, each not before its time."""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections.abc import AsyncIterator, Iterator


class _Schedule:
    """Payloads by the time when they are due; those of one time in the order of `put`."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, bytes]] = []
        self._count = 0

    def put(self, payload: bytes, delay: float) -> None:
        heapq.heappush(self._waiting, (time.monotonic() + delay, self._count, payload))
        self._count += 1

    def take(self) -> bytes | None:
        """The next payload that is due."""
        return heapq.heappop(self._waiting)[2] if self.delay() == 0 else None

    def delay(self) -> float | None:
        """Seconds until a payload is due, at least 0; None: there is none."""
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else None


class Outbox:
    """For one thread that sends. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._schedule = _Schedule()
        self._ended = False

    def put(self, payload: bytes, delay: float = 0.0) -> None:
        with self._changed:
            self._schedule.put(payload, delay)
            self._changed.notify()

    def end(self) -> None:
        """What is not sent yet is not sent any more."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def messages(self) -> Iterator[bytes]:
        """Waits for each; ends after `end`."""
        return iter(self._next, None)

    def _next(self) -> bytes | None:
        with self._changed:
            while not self._ended:
                if (payload := self._schedule.take()) is not None:
                    return payload
                delay = self._schedule.delay()
                self._changed.wait(None if delay is None else min(delay, threading.TIMEOUT_MAX))
        return None


class AsyncOutbox:
    """Like Outbox, for one event loop."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._schedule = _Schedule()
        self._ended = False

    def put(self, payload: bytes, delay: float = 0.0) -> None:
        self._schedule.put(payload, delay)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def messages(self) -> AsyncIterator[bytes]:
        while not self._ended:
            if (payload := self._schedule.take()) is not None:
                yield payload
            else:
                await self._change(self._schedule.delay())

    async def _change(self, delay: float | None) -> None:
        """Waits for a change, at most so many seconds."""
        self._changed.clear()
        timer = None if delay is None else asyncio.get_running_loop().call_later(delay, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()
