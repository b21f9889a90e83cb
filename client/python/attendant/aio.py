# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import grpc.aio

from attendant import operations
from attendant.base import DEFAULT_TARGET, Base, describe, only_model, parsed, serialized
from attendant.channel import ChannelOptions, Tls, connect_async
from attendant.choices import checked_count
from attendant.closing import failure, open_channel, pause
from attendant.job import Job, Request, Rpc
from attendant.options import OptionFields, Options
from attendant.retry import Attempts
from attendant.stream_aio import run_stream
from attendant.window import Outcome

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

P = ParamSpec("P")
T = TypeVar("T")


def awaited(operation: Callable[P, Job[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """The method of an async client that runs an operation."""
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(operation(*args, **kwargs))

    describe(method, operation)
    return method


class AsyncClient(Base):
    """Like Client, with methods to await. For one event loop, in which it is made."""

    def __init__(self, target: str = DEFAULT_TARGET, *, tls: Tls | None = None, max_concurrency: int = 4,
                 channel_options: ChannelOptions = (), **options: Unpack[OptionFields]) -> None:
        self._max_concurrency = checked_count("max_concurrency", max_concurrency)
        self._options = Options(**options)
        self._only_model = {}
        self._closed = asyncio.Event()
        self._channel = connect_async(target, tls, channel_options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels calls in work and disconnects, for the copies of with_options() too."""
        self._closed.set()
        await self._channel.close()

    embed = awaited(operations.embed)
    embed_chunks = awaited(operations.embed_chunks)
    encode = awaited(operations.encode)
    rerank = awaited(operations.rerank)
    classify = awaited(operations.classify)
    sparse = awaited(operations.sparse)
    multi_vectors = awaited(operations.multi_vectors)
    fill_mask = awaited(operations.fill_mask)
    classify_tokens = awaited(operations.classify_tokens)
    word_weights = awaited(operations.word_weights)
    attend = awaited(operations.attend)
    attention_kinds = awaited(operations.attention_kinds)
    attention_maps = awaited(operations.attention_maps)
    models = awaited(operations.models)
    health = awaited(operations.health)
    load_model = awaited(operations.load_model)
    unload_model = awaited(operations.unload_model)

    async def run(self, job: Job[T]) -> T:
        """The result of a job of attendant.operations. The first error of a request ends it, and cancels the others."""
        requests = iter(job.requests)
        head = list(itertools.islice(requests, 2))
        with self._noticing(job):
            if len(head) < 2:
                results = [await self._call(request) for request in head]
            else:
                results = await self._call_all(itertools.chain(head, requests))
        then = job.then(results)
        return job.join(results) if then is None else await self.run(then)

    async def stream(self, jobs: Iterable[Job[T]] | AsyncIterable[Job[T]], *,
                     max_in_flight: int = 64) -> AsyncGenerator[T, None]:
        """Like Client.stream(); `jobs` may be async too."""
        outcomes = self.stream_outcomes(jobs, max_in_flight=max_in_flight, ordered=True)
        try:
            async for outcome in outcomes:
                yield outcome.value
        finally:
            await outcomes.aclose()

    def stream_outcomes(self, jobs: Iterable[Job[T]] | AsyncIterable[Job[T]], *, max_in_flight: int = 64,
                        ordered: bool = False) -> AsyncGenerator[Outcome[T], None]:
        """Like Client.stream_outcomes(); `jobs` may be async too."""
        request_id = self._options.id_of_call()

        def start(rpc: Rpc, payloads: AsyncIterator[bytes]) -> Any:
            with open_channel(self._closed, request_id):
                method: Any = self._channel.stream_stream(rpc.stream, None, rpc.stream_answer.FromString)
                return method(payloads, metadata=self._options.headers(request_id))

        return run_stream(jobs, self._prepare, start, self._closed, lambda: Attempts(self._options.retry, None),
                          request_id, max_in_flight, ordered)

    async def _prepare(self, request: Request[Any]) -> None:
        if self._lacks_model(request):
            request.message.model = self._only_model[""] = only_model(await self.models())

    async def _call(self, request: Request[T]) -> T:
        await self._prepare(request)
        method: Any = self._channel.unary_unary(request.rpc.path, None, request.rpc.answer.FromString)
        request_id = self._options.id_of_call()
        payload = serialized(request, request_id)
        attempts = self._attempts()
        while True:
            try:
                with open_channel(self._closed, request_id):
                    call = method(payload, timeout=attempts.remaining(), metadata=self._options.headers(request_id))
                return parsed(request, await _answer(call), request_id)
            except grpc.RpcError as rpc_error:
                error = failure(rpc_error, self._closed, request_id, request.part)
            delay = attempts.delay_after(error)
            if delay is None:
                raise error
            await pause(self._closed, delay)

    async def _call_all(self, requests: Iterator[Request[Any]]) -> list[Any]:
        """The results in the order of the requests."""
        numbered = enumerate(requests)
        results: dict[int, Any] = {}

        async def work() -> None:
            for index, request in numbered:
                results[index] = await self._call(request)

        workers = [asyncio.create_task(work()) for _ in range(self._max_concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return [results[index] for index in range(len(results))]


async def _answer(call: Any) -> Any:
    """The answer of a unary call. RpcError: the call failed. asyncio.CancelledError: who waits here was cancelled, and so is
    the call. Awaited itself, a call raises that also when its channel is closed."""
    try:
        code = await call.code()
    except asyncio.CancelledError:
        call.cancel()
        raise
    if code is grpc.StatusCode.CANCELLED:
        raise grpc.aio.AioRpcError(code, await call.initial_metadata(), await call.trailing_metadata(),
                                   details=await call.details())
    return await call
