# SPDX-License-Identifier: Apache-2.0
"""Sends one request after another on several threads until SIGTERM, then prints a JSON object: how many were answered
after which time, how often with which answer, and the errors. The sequences of a request are the same: an answer whose rows
differ is an error.

    client.py TARGET MODEL THREADS [--round_robin] [--once]

It tries a call again as the C++ client does (client/channel.cc), unless --once says otherwise. With --round_robin it
spreads calls over all addresses of TARGET.
"""

import collections
import hashlib
import json
import pathlib
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))

import grpc  # noqa: E402
from harness.attendant import ids, pb, request, stubs  # noqa: E402

SEQUENCES, LEN, VOCAB = 4, 32, 20
LIMIT_S = 600  # when whoever started it died
RETRIES = {
    "name": [{"service": "attendant.v1.Encoder"}],
    "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
                    "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]},
}


def channel(target):
    config = {}
    if "--once" not in sys.argv:
        config["methodConfig"] = [RETRIES]
    if "--round_robin" in sys.argv:
        config["loadBalancingConfig"] = [{"round_robin": {}}]
    return grpc.insecure_channel(target, options=[("grpc.service_config", json.dumps(config)),
                                                  ("grpc.enable_retries", "--once" not in sys.argv),
                                                  ("grpc.use_local_subchannel_pool", 1)])


def name_of(data):
    """A short name of an answer; an error when servers of different models can have made it together."""
    row_bytes = len(data) // SEQUENCES
    if data != data[:row_bytes] * SEQUENCES:
        raise ValueError("the rows of an answer differ")
    return hashlib.sha256(data).hexdigest()[:16]


def main():
    target, model, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    message = request(model, [ids([1 + i % VOCAB for i in range(LEN)])] * SEQUENCES, pooled=pb.PooledOutput())
    stop, lock = threading.Event(), threading.Lock()
    answers, errors = collections.Counter(), []
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def work(stub):
        while not stop.is_set():
            try:
                name = name_of(stub.Encode(message, timeout=60).pooled.data)
                with lock:
                    answers[name] += 1
            except grpc.RpcError as error:
                with lock:
                    errors.append(f"{error.code()}: {error.details()}")
            except ValueError as error:
                with lock:
                    errors.append(str(error))

    with channel(target) as connected:
        stub = stubs.EncoderStub(connected)
        start = time.monotonic()
        running = [threading.Thread(target=work, args=[stub]) for _ in range(threads)]
        for thread in running:
            thread.start()
        # In short steps: the handler runs when this thread wakes, and after SIGCONT another thread may get the signal.
        while not stop.wait(0.1) and time.monotonic() < start + LIMIT_S:
            pass
        stop.set()
        for thread in running:
            thread.join()
        print(json.dumps({"answered": answers.total(), "seconds": time.monotonic() - start, "errors": errors,
                          "answers": answers}))


if __name__ == "__main__":
    main()
