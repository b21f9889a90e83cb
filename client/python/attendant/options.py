# SPDX-License-Identifier: Apache-2.0
"""What a client sends with its calls, beside their requests."""

from __future__ import annotations

import numbers
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from attendant.choices import checked_text
from attendant.retry import Retry

Text = str | Callable[[], str | None] | None

_HEADER_NAME = re.compile(r"[0-9a-z_.-]+")


@dataclass(frozen=True)
class Options:
    """Where a text may be a function, it is called for each attempt of a call. Headers are sent without the white space
    around them."""

    # The model of calls that name none. None: the only encoder of the server, asked for once.
    model: str | None = None
    # Of encoders. None: the highest that serves, as of modules for attend(), whose requests cannot name one.
    model_version: int | None = None
    # Seconds for a request with all its attempts, above 0; None: without end. The server sees it as a deadline.
    timeout: float | None = 30.0
    retry: Retry = Retry()
    # -100 to 100; higher is served first. Servers lower it to their --max_priority, by default 0.
    priority: int = 0
    # Sent as `authorization: Bearer KEY`. Without TLS it travels unencrypted. repr() does not show it.
    api_key: Text = field(default=None, repr=False)
    # For the server's access log. None: a new one for each call. Exceptions have it.
    request_id: str | None = None
    # W3C Trace Context, for example of OpenTelemetry's current span.
    traceparent: Text = None
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)  # more headers, which may hold keys too

    def __post_init__(self) -> None:
        checked_text("model", self.model)
        if not isinstance(self.retry, Retry):
            raise TypeError(f"retry is {self.retry!r}: it must be a Retry")
        if self.timeout is not None and not isinstance(self.timeout, numbers.Real):
            raise TypeError(f"timeout is {self.timeout!r}: it must be a number of seconds, or None")
        if self.timeout is not None and not self.timeout > 0:  # not a number neither
            raise ValueError(f"timeout is {self.timeout}: it must be above 0 seconds, or None")
        for name in self.metadata:
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"metadata has {name!r}: a name has the characters a to z, 0 to 9, '_', '.' and '-'")
            if name.endswith("-bin"):
                raise ValueError(f"metadata has {name!r}: headers of bytes are not sent")
        headers = {name: _header(f"metadata[{name!r}]", value) for name, value in self.metadata.items()}
        object.__setattr__(self, "metadata", headers)
        if self.request_id is not None:
            object.__setattr__(self, "request_id", _header("request_id", self.request_id))

    def id_of_call(self) -> str:
        return self.request_id or uuid.uuid4().hex

    def headers(self, request_id: str) -> tuple[tuple[str, str], ...]:
        """The metadata of an attempt of a call."""
        headers = {**self.metadata, "x-request-id": request_id}
        for name, option, prefix, text in (("authorization", "api_key", "Bearer ", self.api_key),
                                           ("traceparent", "traceparent", "", self.traceparent)):
            value = text() if callable(text) else text
            if value:
                headers[name] = prefix + _header(option, value)
        return tuple(headers.items())


def _header(option: str, value: str) -> str:
    """The value without the white space around it, such as the end of a key's line in its file. The error does not show
    the value: it may be a key."""
    if not isinstance(value, str):
        raise TypeError(f"{option} is of {type(value).__name__}: it must be a text")
    value = value.strip()
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{option} has characters that no header can have: it takes printable ASCII")
    return value


class OptionFields(TypedDict, total=False):
    """The fields of Options, as keywords."""

    model: str | None
    model_version: int | None
    timeout: float | None
    retry: Retry
    priority: int
    api_key: Text
    request_id: str | None
    traceparent: Text
    metadata: Mapping[str, str]
