# SPDX-License-Identifier: Apache-2.0
"""Calls of a client that is closed, before or meanwhile. `closed` is set when it is, before its channel is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from threading import Event, Thread

import grpc

from attendant.errors import AttendantError, CancelledError, from_rpc

_LONGEST_CLOSE_SECONDS = 5.0  # without a fault it takes milliseconds


def close_channel(channel: grpc.Channel) -> None:
    """Cancels its calls and disconnects. If KeyboardInterrupt, or what else a signal's handler raises, has come just while
    gRPC started a call, no thread of gRPC's takes the call's end, and gRPC waits for that without end. So another thread
    closes the channel, and stays with it if need be."""
    thread = Thread(target=channel.close, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends, or the system refuses a thread
        channel.close()
        return
    thread.join(_LONGEST_CLOSE_SECONDS)


def closed_error(request_id: str) -> CancelledError:
    return CancelledError("the client is closed", request_id=request_id)


@contextlib.contextmanager
def open_channel(closed: Event | asyncio.Event, request_id: str) -> Iterator[None]:
    """Of a call that starts. CancelledError where the channel is closed: gRPC's errors of that are of several kinds."""
    if closed.is_set():
        raise closed_error(request_id)
    try:
        yield
    except ValueError as error:
        raise closed_error(request_id) if closed.is_set() else error


def failure(error: grpc.RpcError, closed: Event | asyncio.Event, request_id: str, part: str = "") -> AttendantError:
    """The exception of a call that gRPC ended with an error."""
    if closed.is_set() and error.code() is grpc.StatusCode.CANCELLED:
        return closed_error(request_id)
    failed = from_rpc(error, request_id)
    return failed.of(part) if part else failed


async def pause(closed: asyncio.Event, seconds: float) -> None:
    """Ends early when the client is closed."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(closed.wait(), seconds)
