# SPDX-License-Identifier: Apache-2.0
"""A stream that a client keeps open without using it does not hold up a stopping server."""

import queue
import time

import tritonclient.grpc as triton

from harness import settings
from harness.attendant import DEADLINE
from kserve_tensors import ids_inputs

DRAIN_SECONDS = 60


def test_an_idle_stream_does_not_hold_the_drain(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, f"--drain_timeout_s={DRAIN_SECONDS}").wait_ready()
    answers = queue.Queue()
    with triton.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("tiny.ids", ids_inputs([[5, 6, 7]]))
        _, error = answers.get(timeout=DEADLINE)
        assert error is None
        start = time.monotonic()
        server.terminate()
        assert server.wait() == 0
        assert time.monotonic() - start < DRAIN_SECONDS / 2
        _, error = answers.get(timeout=DEADLINE)
        assert error.status() == "StatusCode.UNAVAILABLE"
