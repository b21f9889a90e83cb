# SPDX-License-Identifier: Apache-2.0
"""The blocking client."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from threading import Event
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from attendant import operations
from attendant.base import DEFAULT_TARGET, Base, describe, only_model, serialized
from attendant.calls import Call, Calls
from attendant.channel import ChannelOptions, Tls, connect
from attendant.choices import checked_count
from attendant.closing import close_channel, open_channel
from attendant.job import Job, Request, Rpc
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
    """A connection to a server. Any number of threads may use it. The first call connects. Forked while calls are in work, a
    process needs a new client in the child.

    target: HOST:PORT, or any gRPC target.
    tls: Tls(...) encrypts; None does not.
    max_concurrency: requests of one call that are in work at the same time, when its inputs take several.
    channel_options: further arguments of the gRPC channel.
    options: the fields of attendant.Options, for all calls."""

    def __init__(self, target: str = DEFAULT_TARGET, *, tls: Tls | None = None, max_concurrency: int = 4,
                 channel_options: ChannelOptions = (), **options: Unpack[OptionFields]) -> None:
        self._max_concurrency = checked_count("max_concurrency", max_concurrency)
        self._options = Options(**options)
        self._only_model = {}
        self._closed = Event()
        self._channel = connect(target, tls, channel_options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels calls in work and disconnects, for the copies of with_options() too."""
        self._closed.set()
        close_channel(self._channel)

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
    load_model = blocking(operations.load_model)
    unload_model = blocking(operations.unload_model)

    def run(self, job: Job[T]) -> T:
        """The result of a job of attendant.operations. The first error of a request ends it, and cancels the others. While it
        waits for the next input of an iterator, it sees no error and sends no request again."""
        calls = Calls(self._closed)
        with self._noticing(job):
            try:
                for request in job.requests:
                    calls.wait(self._max_concurrency - 1)
                    calls.add(self._call(request))
                calls.wait(0)
            finally:
                calls.cancel()
        then = job.then(calls.results)
        return job.join(calls.results) if then is None else self.run(then)

    def stream(self, jobs: Iterable[Job[T]], *, max_in_flight: int = 64) -> Generator[T, None, None]:
        """The results of jobs of one request each, on one gRPC stream, in the order of the jobs. A job that fails raises its
        error and ends the stream. `jobs` is read by a thread, as fast as `max_in_flight` lets it. A stream has no timeout."""
        outcomes = self.stream_outcomes(jobs, max_in_flight=max_in_flight, ordered=True)
        try:
            for outcome in outcomes:
                yield outcome.value
        finally:
            outcomes.close()

    def stream_outcomes(self, jobs: Iterable[Job[T]], *, max_in_flight: int = 64,
                        ordered: bool = False) -> Generator[Outcome[T], None, None]:
        """Like stream(), but each job ends in an Outcome with a result or an error; as they come unless `ordered`."""
        request_id = self._options.id_of_call()

        def start(rpc: Rpc, payloads: Iterator[bytes]) -> Any:
            with open_channel(self._closed, request_id):
                method: Any = self._channel.stream_stream(rpc.stream, None, rpc.stream_answer.FromString)
                return method(payloads, metadata=self._options.headers(request_id))

        return run_stream(jobs, self._prepare, start, self._closed, lambda: Attempts(self._options.retry, None),
                          request_id, max_in_flight, ordered)

    def _prepare(self, request: Request[Any]) -> None:
        if self._lacks_model(request):
            request.message.model = self._only_model[""] = only_model(self.models())

    def _call(self, request: Request[Any]) -> Call:
        self._prepare(request)
        method: Any = self._channel.unary_unary(request.rpc.path, None, request.rpc.answer.FromString)
        request_id = self._options.id_of_call()
        payload = serialized(request, request_id)

        def send(timeout: float | None) -> Any:
            with open_channel(self._closed, request_id):
                return method.future(payload, timeout=timeout, metadata=self._options.headers(request_id))

        return Call(request, request_id, self._attempts(), send)
