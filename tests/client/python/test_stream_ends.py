# SPDX-License-Identifier: Apache-2.0
"""Streams that end before their jobs: by a job that fails, or by the reader of jobs."""

import itertools
import threading

import grpc
import pytest

import attendant
from attendant import operations
from fake_server import refusal
from harness.server import wait_until


def test_a_failed_job_ends_the_stream_while_its_error_is_kept(fake):
    read = []

    def jobs():
        for number in itertools.count():
            read.append(number)
            yield operations.embed("a")

    fake.on_stream = lambda requests, _: (refusal(request, grpc.StatusCode.INVALID_ARGUMENT) for request in requests)
    with attendant.Client(fake.target, model="m") as client:
        rows = client.stream(jobs(), max_in_flight=2)
        with pytest.raises(attendant.InvalidArgumentError) as kept:
            next(rows)
        wait_until("the end of its thread", 30, lambda: all(
            thread.name != "attendant-stream" for thread in threading.enumerate()))
        assert kept.value.__traceback__ is not None
        assert len(read) <= 2 + 2  # one waits; one that was taken made room
        assert list(rows) == []
