# SPDX-License-Identifier: Apache-2.0
"""What the blocking and the async client share."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from attendant.errors import AttendantError, InvalidArgumentError, NotFoundError
from attendant.job import Job, Request, serialize
from attendant.operations.status import Model
from attendant.options import OptionFields, Options
from attendant.retry import Attempts

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")

DEFAULT_TARGET = "127.0.0.1:8001"


class Base:
    _options: Options
    # Shared by the copies of with_options().
    _only_model: dict[str, str]  # {"": name} once it is known

    @property
    def options(self) -> Options:
        """Those of its calls."""
        return self._options

    def with_options(self, **options: Unpack[OptionFields]) -> Self:
        """A client on the same connection with other options: client.with_options(timeout=0.5).embed(texts)."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, _options=dataclasses.replace(self._options, **options))
        return copy

    def _attempts(self) -> Attempts:
        return Attempts(self._options.retry, self._options.timeout)

    @contextlib.contextmanager
    def _noticing(self, job: Job[Any]) -> Iterator[None]:
        """Forgets the only model when the job that may have changed it ends, with its error too: a load may go on."""
        try:
            yield
        finally:
            if job.changes_models:
                self._only_model.clear()

    def _lacks_model(self, request: Request[Any]) -> bool:
        """Puts the options into the request. True: it still needs the only model of the server."""
        if request.rpc.has_priority:
            request.message.priority = self._options.priority
        if not request.rpc.needs_model:
            return False
        if self._options.model_version is not None:
            request.message.model_version = str(self._options.model_version)
        if request.message.model:
            return False
        request.message.model = self._options.model or self._only_model.get("", "")
        return not request.message.model


def serialized(request: Request[Any], request_id: str) -> bytes:
    with _named(request, request_id):
        return serialize(request.message)


def parsed(request: Request[T], answer: Any, request_id: str) -> T:
    """The result of a request."""
    with _named(request, request_id):
        return request.parse(answer)


@contextlib.contextmanager
def _named(request: Request[Any], request_id: str) -> Iterator[None]:
    """An error that this client finds has the request's id and part."""
    try:
        yield
    except AttendantError as error:
        error.request_id = request_id
        raise error.of(request.part) if request.part else error


def only_model(models: list[Model]) -> str:
    """The name of the only model. One that was unloaded, or is being unloaded, does not count beside others."""
    used = [model for model in models if model.state not in ("unloaded", "draining")]
    names = sorted({model.name for model in used or models})
    if not names:
        raise NotFoundError("the server has no models")
    if len(names) > 1:
        raise InvalidArgumentError(f"the server has {len(names)} models, name one of them: {', '.join(names)}")
    return names[0]


def describe(method: Callable[..., Any], operation: Callable[..., Any]) -> None:
    """Gives a method the name, the documentation and the signature of its operation."""
    signature = inspect.signature(operation)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    returns = str(signature.return_annotation).removeprefix("Job[").removesuffix("]")
    method.__name__ = operation.__name__
    method.__doc__ = operation.__doc__
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *signature.parameters.values()], return_annotation=returns)
