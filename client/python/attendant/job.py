# SPDX-License-Identifier: Apache-2.0
"""What an operation asks of the server, apart from how it is sent: blocking, awaited or on a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from google.protobuf.message import EncodeError

from attendant.errors import InvalidArgumentError
from attendant.v1 import attention_pb2, encoder_pb2

T = TypeVar("T")


@dataclass(frozen=True)
class Rpc:
    """A method of the server. `stream` is the method for many of its requests, whose answers are `stream_answer`."""

    path: str
    answer: Any
    stream: str = ""
    stream_answer: Any = None
    needs_model: bool = False
    has_priority: bool = False


ENCODE = Rpc("/attendant.v1.Encoder/Encode", encoder_pb2.EncodeResponse, "/attendant.v1.Encoder/EncodeStream",
             encoder_pb2.EncodeStreamResponse, needs_model=True, has_priority=True)
LIST_MODELS = Rpc("/attendant.v1.Encoder/ListModels", encoder_pb2.ListModelsResponse)
ATTEND = Rpc("/attendant.v1.Attention/Attend", attention_pb2.AttendResponse, "/attendant.v1.Attention/AttendStream",
             attention_pb2.AttendStreamResponse, has_priority=True)
LIST_ATTENTION = Rpc("/attendant.v1.Attention/ListAttention", attention_pb2.ListAttentionResponse)


def serialize(message: Any) -> bytes:
    """Not by gRPC, which raises an error of its own then, or sends an empty message. InvalidArgumentError: protobuf cannot."""
    try:
        return cast(bytes, message.SerializeToString())
    except EncodeError as error:
        raise InvalidArgumentError(f"the request cannot be serialized: {error}") from error


@dataclass(frozen=True)
class Request(Generic[T]):
    rpc: Rpc
    message: Any
    parse: Callable[[Any], T]
    part: str = ""  # of the job, for its errors: "inputs 32 to 63"


class _Once:
    """Requests that are made as they are read."""

    def __init__(self, requests: Iterator[Request[Any]]) -> None:
        self._requests: Iterator[Request[Any]] | None = requests

    def __iter__(self) -> Iterator[Request[Any]]:
        if self._requests is None:
            raise RuntimeError("the requests of this job were sent already: make the job anew")
        requests, self._requests = self._requests, None
        return requests


def _no_job(_: list[Any]) -> None:
    pass


@dataclass(frozen=True)
class Job(Generic[T]):
    """The requests of an operation, made as they are sent, and how their results become one. For one run.

    then: of the results, a job whose result counts in place of that of `join`; None: there is none.
    changes_models: what the server has may be another after it, and after its error."""

    requests: Iterable[Request[Any]]
    join: Callable[[list[Any]], T]
    then: Callable[[list[Any]], Job[T] | None] = _no_job
    changes_models: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.requests, Iterator):
            object.__setattr__(self, "requests", _Once(self.requests))

    @staticmethod
    def of(request: Request[T]) -> Job[T]:
        return Job([request], lambda results: cast(T, results[0]))
