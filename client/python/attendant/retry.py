# SPDX-License-Identifier: Apache-2.0
"""When a call that failed is tried again.

gRPC's own policy does not do: it is one for a whole channel, where each call may have its own `retry`; it makes five attempts
at most; and it tries a whole stream again, not one of its requests."""

from __future__ import annotations

import numbers
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from attendant.choices import checked_count
from attendant.errors import AttendantError


LONGEST_WAIT = 300.0  # seconds that a server can ask for
_DOUBLINGS = 60  # of a delay; more would not fit a float
_ENDLESS = 100 * 365 * 86400.0  # gRPC's clock cannot hold every longer timeout


@dataclass(frozen=True)
class Retry:
    """A call is tried again while the server cannot be reached, a model loads, or a queue is full. It waits for a random
    time, at most `first_delay`, then twice that, and so on up to `max_delay`; and at least for as long as the server says,
    up to half as long again, and at most LONGEST_WAIT. Seconds."""

    max_attempts: int = 18  # with these delays they last 30 to 61 seconds: the usual timeout comes first
    first_delay: float = 0.1
    max_delay: float = 5.0

    def __post_init__(self) -> None:
        checked_count("max_attempts", self.max_attempts)
        for name in ("first_delay", "max_delay"):
            delay = getattr(self, name)
            if not isinstance(delay, numbers.Real):
                raise TypeError(f"{name} is {delay!r}: it must be a number of seconds")
        if not 0 <= self.first_delay <= self.max_delay:  # not a number neither
            raise ValueError(f"{self}: needs 0 <= first_delay <= max_delay")


class Attempts:
    """The attempts of one call, all within one timeout in seconds; None: without end."""

    def __init__(self, retry: Retry, timeout: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._retry = retry
        self._clock = clock
        self._end = None if timeout is None or timeout > _ENDLESS else clock() + timeout
        self._failures = 0

    def remaining(self) -> float | None:
        """The timeout of the next attempt."""
        return None if self._end is None else max(0.0, self._end - self._clock())

    def delay_after(self, error: AttendantError) -> float | None:
        """How long to wait before the next attempt; None when there is none."""
        self._failures += 1
        if not error.retryable or self._failures >= self._retry.max_attempts:
            return None
        delay = max(self._backoff(), _after_hint(error.retry_after or 0.0))
        remaining = self.remaining()
        return delay if remaining is None or delay < remaining else None

    def _backoff(self) -> float:
        most = min(self._retry.max_delay, self._retry.first_delay * 2.0 ** min(self._failures - 1, _DOUBLINGS))
        return random.uniform(most / 2, most)


def _after_hint(seconds: float) -> float:
    """Random, as a server says the same to all clients that it refuses together."""
    return min(random.uniform(seconds, 1.5 * seconds), LONGEST_WAIT)
