# SPDX-License-Identifier: Apache-2.0
"""The exceptions of calls that failed. Each is also the built-in exception that comes closest."""

from __future__ import annotations

from typing import Any

import grpc

_PUSHBACK = "grpc-retry-pushback-ms"
_NO_CONNECTION = "failed to connect to all addresses"
_MAY_NEED_TLS = "the server may need TLS, or a client's certificate"
_BAD_FILES = "Failed to create security handshaker"
_NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"
# gRPC's words about a connection, and what they mean.
_HINTS = {"WRONG_VERSION_NUMBER": "the server speaks no TLS",
          _BAD_FILES: "the files of Tls cannot be used: is one damaged, or the key of another certificate?",
          _NOT_TRUSTED: "the server's certificate is not trusted: ca_file of Tls names its authority",
          "Socket closed": _MAY_NEED_TLS, "Connection reset by peer": _MAY_NEED_TLS}
_NO_CHANGES = "explicit model load"  # Triton's code for it is UNAVAILABLE, but to try again does not help
_TOO_LARGE = "Received message larger than max"  # the server's gRPC, which names no flag


class AttendantError(Exception):
    """A call failed. str() is the server's message: it names the field, the value and the limit."""

    def __init__(self, message: str, code: grpc.StatusCode | None = None, request_id: str | None = None,
                 retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code or _code_of(type(self))
        self.request_id = request_id    # as in the server's access log
        self.retry_after = retry_after  # seconds; negative: do not try again; None: the server does not say

    def of(self, part: str) -> AttendantError:
        """The same error of a part of a call."""
        return type(self)(f"{self} (of {part})", self.code, self.request_id, self.retry_after)

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        if self.retry_after is not None and self.retry_after < 0:
            return False
        return self.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED) and not any(
            words in str(self) for words in (_TOO_LARGE, _BAD_FILES, _NOT_TRUSTED))


class InvalidArgumentError(AttendantError, ValueError):
    """The request cannot be answered as it is."""


class UnauthenticatedError(AttendantError, PermissionError):
    """The server asks for an API key, and the call has none that it knows."""


class PermissionDeniedError(AttendantError, PermissionError):
    """The API key may not call this method, or the server loads no models for clients."""


class NotFoundError(AttendantError, LookupError):
    """There is no such model."""


class ResourceExhaustedError(AttendantError):
    """The queue or a budget is full, or the message is too large."""


class DeadlineExceededError(AttendantError, TimeoutError):
    """The timeout passed, or is too near for an answer in time."""


class UnavailableError(AttendantError, ConnectionError):
    """The server cannot be reached or is draining, or the model does not serve: it is loading, idle, unloaded or failed."""


class UnimplementedError(AttendantError, NotImplementedError):
    """The server does not have this method or option."""


class CancelledError(AttendantError):
    """The call was cancelled, for example by closing the client."""


class InternalError(AttendantError):
    """The server failed, or its answer contradicts itself."""


_CLASSES: dict[grpc.StatusCode, type[AttendantError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidArgumentError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.UNIMPLEMENTED: UnimplementedError,
    grpc.StatusCode.CANCELLED: CancelledError,
    grpc.StatusCode.INTERNAL: InternalError,
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}


def _code_of(kind: type[AttendantError]) -> grpc.StatusCode:
    """The code of an error that this client found."""
    return next((code for code, error in _CLASSES.items() if error is kind), grpc.StatusCode.UNKNOWN)


def from_status(code: grpc.StatusCode | int, message: str, request_id: str | None = None,
                retry_after: float | None = None) -> AttendantError:
    """The exception of a status, whose code may be a number that this gRPC does not know."""
    if isinstance(code, int):
        code = _CODES.get(code, grpc.StatusCode.UNKNOWN)
    return _CLASSES.get(code, AttendantError)(message, code, request_id, retry_after)


def from_rpc(error: grpc.RpcError, request_id: str | None) -> AttendantError:
    """The exception of a call that gRPC ended with an error, blocking or not."""
    pairs: Any = error.trailing_metadata() or ()
    trailing: dict[str, str | bytes] = dict(pairs)
    code = error.code()
    message = error.details() or code.name
    if message.startswith(_NO_CONNECTION):
        message += "".join(f" ({hint})" for words, hint in _HINTS.items() if words in message)
    if message.removeprefix("SERVER: ").startswith(_TOO_LARGE):
        message = f"the request is larger than the server's --max_request_bytes: {message}"
    if code is grpc.StatusCode.UNAVAILABLE and message.startswith(_NO_CHANGES):
        code = grpc.StatusCode.PERMISSION_DENIED
    return from_status(code, message, request_id, _pushback(trailing.get(_PUSHBACK)))


def _pushback(text: str | bytes | None) -> float | None:
    """Seconds; what is not a number, or too large for one, means 'do not try again', as in gRPC's own policy."""
    if text is None:
        return None
    try:
        return int(text) / 1000
    except (ValueError, OverflowError):
        return -1.0
