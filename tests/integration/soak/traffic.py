# SPDX-License-Identifier: Apache-2.0
"""Honest clients: each request must be answered once, with the bits that it has on a quiet server."""

import itertools
import threading

import grpc

from harness import attendant
from harness.attendant import DEADLINE, ids, pb, request
from harness.workers import Workers

LENGTHS = (1, 3, 9, 17, 40)
STREAM_WINDOW = 16
# A client that finds its server again soon after it is back.
RECONNECTING = (("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 500))


def messages(model):
    return [request(model, [ids(5 + (7 * i) % 90 for i in range(length))], pooled=pb.PooledOutput())
            for length in LENGTHS]


class Traffic(Workers):
    """Unary clients and streams for each model, `copies` of both. `allowed[model][i]` are the answers to its i-th
    message."""

    def __init__(self, target, allowed, stop, copies=1):
        super().__init__([(client, model) for model in allowed for client in (self._unary, self._stream) * copies], stop)
        self.target = target
        self.allowed = allowed
        self.answers = 0
        self.lock = threading.Lock()

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


class PatientTraffic(Traffic):
    """Traffic to a server that stops and comes back: what is UNAVAILABLE is sent again until it is answered."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.retries = 0

    def _again(self, count=1):
        with self.lock:
            self.retries += count
        self.stop.wait(0.01)

    def _unary(self, model):
        with attendant.Client(self.target, *RECONNECTING) as client:
            for index, message in itertools.cycle(enumerate(messages(model))):
                if self.stop.is_set():
                    return
                self._check(model, index, self._patiently(client, message).pooled)

    def _patiently(self, client, message):
        while True:
            try:
                return client.stub.Encode(message, timeout=DEADLINE, wait_for_ready=True)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
            self._again()

    def _stream(self, model):
        """Streams of STREAM_WINDOW requests. What one of them leaves unanswered goes into the next."""
        with attendant.Client(self.target, *RECONNECTING) as client:
            for first in itertools.count(0, STREAM_WINDOW):
                if self.stop.is_set():
                    return
                owed = {str(number): number % len(LENGTHS) for number in range(first, first + STREAM_WINDOW)}
                while owed:
                    answered = self._one_stream(client, model, owed)
                    for number in answered:
                        owed.pop(number)
                    if owed:
                        self._again(len(owed))

    def _one_stream(self, client, model, owed):
        """The ids that were answered. One that comes twice is a KeyError."""
        asked = messages(model)
        sent = [pb.EncodeRequest.FromString(asked[index].SerializeToString()) for index in owed.values()]
        for message, number in zip(sent, owed):
            message.id = number
        waiting, answered = dict(owed), []
        try:
            for answer in client.stub.EncodeStream(iter(sent), timeout=DEADLINE, wait_for_ready=True):
                index = waiting.pop(answer.id)
                if answer.HasField("error"):
                    assert answer.error.code == grpc.StatusCode.UNAVAILABLE.value[0], str(answer.error)
                else:
                    self._check(model, index, answer.response.pooled)
                    answered.append(answer.id)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
        else:
            assert not waiting, f"a stream ended with OK and {len(waiting)} requests without an answer"
        return answered


def quiet_answers(target, model):
    with attendant.Client(target) as client:
        return [client.stub.Encode(message, timeout=DEADLINE).pooled.data for message in messages(model)]
