# SPDX-License-Identifier: Apache-2.0
"""What a client sends with its calls, beside their requests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from attendant.retry import Retry

Text = str | Callable[[], str | None] | None


@dataclass(frozen=True)
class Options:
    """Where a text may be a function, it is called for each call."""

    # The model of calls that name none. None: the only encoder of the server, asked for once.
    model: str | None = None
    # Seconds for a request with all its attempts, above 0; None: without end. The server sees it as a deadline.
    timeout: float | None = 30.0
    retry: Retry = Retry()
    # -100 to 100; higher is served first. Servers lower it to their --max_priority, by default 0.
    priority: int = 0
    # Sent as `authorization: Bearer KEY`. Without TLS it travels unencrypted.
    api_key: Text = None
    # For the server's access log. None: a new one for each call. Exceptions have it.
    request_id: str | None = None
    # W3C Trace Context, for example of OpenTelemetry's current span.
    traceparent: Text = None
    metadata: Mapping[str, str] = field(default_factory=dict)  # more headers

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:  # not a number neither
            raise ValueError(f"timeout is {self.timeout}: it must be above 0 seconds, or None")

    def headers(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The request id and the metadata of a call."""
        request_id = self.request_id or uuid.uuid4().hex
        headers = {**self.metadata, "x-request-id": request_id}
        for name, prefix, text in (("authorization", "Bearer ", self.api_key), ("traceparent", "", self.traceparent)):
            value = text() if callable(text) else text
            if value:
                headers[name] = prefix + value
        return request_id, tuple(headers.items())


class OptionFields(TypedDict, total=False):
    """The fields of Options, as keywords."""

    model: str | None
    timeout: float | None
    retry: Retry
    priority: int
    api_key: Text
    request_id: str | None
    traceparent: Text
    metadata: Mapping[str, str]
