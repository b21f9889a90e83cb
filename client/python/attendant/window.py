# SPDX-License-Identifier: Apache-2.0
"""The requests of a stream that are sent and not answered."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from attendant.errors import AttendantError, InternalError, from_status
from attendant.job import Job, Request, Rpc, serialize
from attendant.retry import Attempts

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """How job number `index` of a stream ended."""

    index: int
    result: T | None = None
    error: AttendantError | None = None

    @property
    def value(self) -> T:
        """The result; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]


@dataclass(frozen=True)
class Resend:
    """A request to send again after `delay` seconds."""

    payload: bytes
    delay: float


@dataclass
class _Sent(Generic[T]):
    index: int
    payload: bytes
    request: Request[Any]
    job: Job[T]
    attempts: Attempts
    due: float = 0.0  # of time.monotonic(): not to be sent before


def only_request(job: Job[T], rpc: Rpc | None) -> Request[Any]:
    """The request of a job for a stream of `rpc`; None: the first one decides."""
    if not isinstance(job, Job):
        raise TypeError(f"a stream takes jobs of attendant.operations, such as operations.embed(text), not {job!r}")
    found = list(itertools.islice(job.requests, 2))
    if len(found) != 1:
        raise ValueError("a stream takes jobs of one request: give each fewer inputs than batch_size, and classify() "
                         "its labels" if found else "a job of a stream has no inputs")
    if not found[0].rpc.stream:
        raise ValueError(f"{found[0].rpc.path} has no stream")
    if rpc is not None and found[0].rpc is not rpc:
        raise ValueError(f"a stream of {rpc.path} takes no {found[0].rpc.path}")
    return found[0]


class Window(Generic[T]):
    """Not thread-safe."""

    def __init__(self, attempts: Callable[[], Attempts], request_id: str) -> None:
        self._attempts = attempts
        self._request_id = request_id
        self._sent: dict[str, _Sent[T]] = {}
        self._count = 0

    def add(self, job: Job[T], request: Request[Any]) -> bytes:
        """The bytes to send."""
        key = request.message.id = str(self._count)
        payload = serialize(request.message)
        self._sent[key] = _Sent(self._count, payload, request, job, self._attempts())
        self._count += 1
        return payload

    def __len__(self) -> int:
        return len(self._sent)

    def unanswered(self) -> list[Resend]:
        """What a new stream must send when the old one broke."""
        now = time.monotonic()
        return [Resend(sent.payload, max(0.0, sent.due - now)) for sent in self._sent.values()]

    def take(self, answer: Any) -> Outcome[T] | Resend:
        """An answer of the server to one of the requests."""
        sent = self._sent.get(answer.id)
        if sent is None:
            raise InternalError(f"the server answered {answer.id!r}, which it was not asked")
        if answer.WhichOneof("result") == "error":
            hint = answer.error.retry_after_ms
            error = from_status(answer.error.code, answer.error.message, self._request_id,
                                hint / 1000 if hint else None)
            delay = sent.attempts.delay_after(error)
            if delay is not None:
                sent.due = time.monotonic() + delay
                return Resend(sent.payload, delay)
            return self._end(answer.id, Outcome(sent.index, None, error))
        try:
            return self._end(answer.id, Outcome(sent.index, sent.job.join([sent.request.parse(answer.response)])))
        except AttendantError as error:
            error.request_id = self._request_id
            return self._end(answer.id, Outcome(sent.index, None, error))

    def _end(self, key: str, outcome: Outcome[T]) -> Outcome[T]:
        del self._sent[key]
        return outcome


class Order(Generic[T]):
    """Gives outcomes in the order of their jobs, or as they come."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._next = 0
        self._early: list[tuple[int, Outcome[T]]] = []

    def put(self, outcome: Outcome[T]) -> Iterator[Outcome[T]]:
        """Those whose turn it is now."""
        heapq.heappush(self._early, (outcome.index, outcome))
        while self._early and (not self._ordered or self._early[0][0] == self._next):
            self._next += 1
            yield heapq.heappop(self._early)[1]
