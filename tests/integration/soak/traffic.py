# SPDX-License-Identifier: Apache-2.0
"""Honest clients: each request must be answered once, with the bits that it has on a quiet server."""

import itertools
import threading

from harness import attendant
from harness.attendant import DEADLINE, ids, pb, request

LENGTHS = (1, 3, 9, 17, 40)
STREAM_WINDOW = 16


def messages(model):
    return [request(model, [ids(5 + (7 * i) % 90 for i in range(length))], pooled=pb.PooledOutput())
            for length in LENGTHS]


class Traffic:
    """Unary clients and a stream for each model. `allowed[model][i]` are the answers to its i-th message."""

    def __init__(self, target, allowed, stop):
        self.target = target
        self.allowed = allowed
        self.stop = stop
        self.answers = 0
        self.faults = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._guard, args=(client, model))
                        for model in allowed for client in (self._unary, self._stream)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _guard(self, client, model):
        try:
            client(model)
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(f"{model}: {error!r}")
            self.stop.set()

    def _check(self, model, index, pooled):
        assert pooled.data in self.allowed[model][index], f"request {index} has an answer of other bits"
        with self.lock:
            self.answers += 1

    def _unary(self, model):
        with attendant.Client(self.target) as client:
            for index, message in itertools.cycle(enumerate(messages(model))):
                if self.stop.is_set():
                    return
                self._check(model, index, client.encode(message).pooled)

    def _stream(self, model):
        """STREAM_WINDOW requests are always under way; an id that comes back twice is a KeyError."""
        room = threading.Semaphore(STREAM_WINDOW)
        waiting = {}

        def numbered():
            for number, (index, message) in enumerate(itertools.cycle(enumerate(messages(model)))):
                room.acquire()
                if self.stop.is_set():
                    return
                copy = pb.EncodeRequest.FromString(message.SerializeToString())
                copy.id = str(number)
                waiting[copy.id] = index
                yield copy

        with attendant.Client(self.target) as client:
            for answer in client.stub.EncodeStream(numbered(), timeout=None):
                assert not answer.HasField("error"), f"{answer.error.code} {answer.error.message}"
                self._check(model, waiting.pop(answer.id), answer.response.pooled)
                room.release()
        assert not waiting, f"{len(waiting)} requests of the stream have no answer"


def quiet_answers(target, model):
    with attendant.Client(target) as client:
        return [client.stub.Encode(message, timeout=DEADLINE).pooled.data for message in messages(model)]
