# SPDX-License-Identifier: Apache-2.0
"""Callers who ask again and again while a server stops: each call is answered or UNAVAILABLE, nothing else."""

import collections
import threading

import grpc

from harness import attendant, settings
from harness.attendant import DEADLINE, ids, request
from harness.server import wait_until

CALLERS = 8
ROUNDS = 5


def ask_until(over, target, codes):
    """Counts the codes of calls on a connection of its own."""
    message = request("tiny", [ids([1, 2, 3])])
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(target, options=options) as channel:
        stub = attendant.stubs.EncoderStub(channel)
        while not over.is_set():
            codes[stub.Encode.future(message, timeout=DEADLINE).code()] += 1


def test_late_calls_are_unavailable(start_server):
    for _ in range(ROUNDS):
        server = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
        over, codes = threading.Event(), collections.Counter()
        callers = [threading.Thread(target=ask_until, args=(over, server.grpc, codes)) for _ in range(CALLERS)]
        try:
            for caller in callers:
                caller.start()
            wait_until("answers", 60, lambda: codes[grpc.StatusCode.OK] > 10 * CALLERS)
            server.terminate()
            assert server.wait() == 0
            wait_until("refusals", 60, lambda: codes[grpc.StatusCode.UNAVAILABLE] > 0)
        finally:
            over.set()
            for caller in callers:
                caller.join()
        assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}, codes
