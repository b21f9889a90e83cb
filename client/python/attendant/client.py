# SPDX-License-Identifier: Apache-2.0
"""The blocking client."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import grpc

from attendant import operations
from attendant.base import DEFAULT_TARGET, Base, describe, failure, only_model, parsed
from attendant.channel import ChannelOptions, Tls, connect
from attendant.job import Job, Request, Rpc, serialize
from attendant.options import OptionFields, Options
from attendant.retry import Attempts
from attendant.stream import run_stream
from attendant.window import Outcome

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

P = ParamSpec("P")
T = TypeVar("T")


def blocking(operation: Callable[P, Job[T]]) -> Callable[Concatenate[Client, P], T]:
    """The method of a client that runs an operation."""
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(operation(*args, **kwargs))

    describe(method, operation)
    return method


class Client(Base):
    """A connection to a server. Any number of threads may use it. The first call connects.

    target: HOST:PORT, or any gRPC target.
    tls: Tls(...) encrypts; None does not.
    max_concurrency: requests of one call that are in work at the same time, when its inputs take several.
    channel_options: further arguments of the gRPC channel.
    options: the fields of attendant.Options, for all calls."""

    def __init__(self, target: str = DEFAULT_TARGET, *, tls: Tls | None = None, max_concurrency: int = 4,
                 channel_options: ChannelOptions = (), **options: Unpack[OptionFields]) -> None:
        self._options = Options(**options)
        self._only_model = {}
        self._channel = connect(target, tls, channel_options)
        self._max_concurrency = max_concurrency
        self._threads = ThreadPoolExecutor(max_concurrency, "attendant")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels calls in work and disconnects, for the copies of with_options() too."""
        self._channel.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    embed = blocking(operations.embed)
    embed_chunks = blocking(operations.embed_chunks)
    encode = blocking(operations.encode)
    rerank = blocking(operations.rerank)
    classify = blocking(operations.classify)
    sparse = blocking(operations.sparse)
    multi_vectors = blocking(operations.multi_vectors)
    fill_mask = blocking(operations.fill_mask)
    classify_tokens = blocking(operations.classify_tokens)
    word_weights = blocking(operations.word_weights)
    attend = blocking(operations.attend)
    attention_kinds = blocking(operations.attention_kinds)
    attention_maps = blocking(operations.attention_maps)
    models = blocking(operations.models)
    health = blocking(operations.health)

    def run(self, job: Job[T]) -> T:
        """The result of a job of attendant.operations."""
        requests = iter(job.requests)
        head = list(itertools.islice(requests, 2))
        if len(head) < 2:
            return job.join([self._call(request) for request in head])
        return job.join(self._call_all(head, requests))

    def stream(self, jobs: Iterable[Job[T]], *, max_in_flight: int = 64) -> Iterator[T]:
        """The results of jobs of one request each, on one gRPC stream, in the order of the jobs. A job that fails raises its
        error and ends the stream. `jobs` is read by a thread, as fast as `max_in_flight` lets it. A stream has no timeout."""
        return (outcome.value for outcome in self.stream_outcomes(jobs, max_in_flight=max_in_flight, ordered=True))

    def stream_outcomes(self, jobs: Iterable[Job[T]], *, max_in_flight: int = 64,
                        ordered: bool = False) -> Iterator[Outcome[T]]:
        """Like stream(), but each job ends in an Outcome with a result or an error; as they come unless `ordered`."""
        request_id, metadata = self._options.headers()

        def start(rpc: Rpc, payloads: Iterator[bytes]) -> Any:
            method: Any = self._channel.stream_stream(rpc.stream, None, rpc.stream_answer.FromString)
            return method(payloads, metadata=metadata)

        return run_stream(jobs, self._prepare, start, lambda: Attempts(self._options.retry, None), request_id,
                          max_in_flight, ordered)

    def _prepare(self, request: Request[Any]) -> None:
        if self._lacks_model(request):
            request.message.model = self._only_model[""] = only_model(self.models())

    def _call(self, request: Request[T]) -> T:
        self._prepare(request)
        method: Any = self._channel.unary_unary(request.rpc.path, serialize, request.rpc.answer.FromString)
        request_id, metadata = self._options.headers()
        attempts = self._attempts()
        while True:
            try:
                answer = method(request.message, timeout=attempts.remaining(), metadata=metadata)
                return parsed(request, answer, request_id)
            except grpc.RpcError as rpc_error:
                error = failure(rpc_error, request_id, request.part)
            delay = attempts.delay_after(error)
            if delay is None:
                raise error
            time.sleep(delay)

    def _call_all(self, head: list[Request[Any]], rest: Iterator[Request[Any]]) -> list[Any]:
        """The results in order. After an error no more requests are sent."""
        calls: deque[Future[Any]] = deque()
        results: list[Any] = []
        try:
            for requests in (head, rest):
                for request in requests:
                    if len(calls) == self._max_concurrency:
                        results.append(calls.popleft().result())
                    calls.append(self._threads.submit(self._call, request))
            results.extend(call.result() for call in calls)
        finally:
            for call in calls:
                call.cancel()
        return results
