# SPDX-License-Identifier: Apache-2.0
"""What makes a server's day bad. Each trouble is a method that happens once, and is repeated on its own thread."""

import random
import socket
import subprocess
import threading
import time

import grpc

from harness import attendant, hostile, memory, settings
from harness.attendant import DEADLINE, ids, pb, request
from harness.model_folder import write_model
from harness.server import wait_until
from harness.slow_client import SlowClient
from harness.workers import Workers

HOUR = 3600
CASES = [case for case in hostile.cases(400) if not case.path.startswith(hostile.HEALTH)]
BAD_CODES = {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


class Troubles(Workers):
    """One server's troubles, but those that are named in `without`. `counts` says how often each has happened. The
    model `swap` has its other weights when they begin."""

    def __init__(self, server, folder, seed, stop, without=()):
        kinds = [self.cancel_storm, self.killed_client, self.slow_reader, self.no_descriptors, self.reload,
                 self.corrupt_reload, self.repository_gone, self.wall_clock, self.mangled_bytes]
        super().__init__([(self._happen, kind, random.Random(f"{seed}.{kind.__name__}")) for kind in kinds
                          if kind.__name__ not in without], stop)
        self.server = server
        self.repository = folder / "repository"
        self.clock = folder / "clock"
        self.counts = {}
        self.disk = threading.Lock()  # of the troubles that write the repository
        self.negated = True

    def _happen(self, kind, rng):
        while not self.stop.is_set():
            number = kind(rng)
            self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + number

    def cancel_storm(self, rng):
        """Calls and streams, cancelled at any moment: before they arrive, in the queue, in a batch, after an answer."""
        size = 40
        with attendant.Client(self.server.grpc) as client:
            calls = []
            for _ in range(size):
                rows = [ids([7] * rng.randint(1, 40)) for _ in range(rng.randint(1, 8))]
                message = request("tiny", rows, last_hidden_state=True)
                calls.append(client.stub.EncodeStream(iter([message] * 3), timeout=DEADLINE) if rng.random() < 0.2
                             else client.stub.Encode.future(message, timeout=DEADLINE))
                if rng.random() < 0.3:
                    time.sleep(rng.random() * 0.003)
                rng.choice(calls).cancel()
            for call in calls:
                call.cancel()
            codes = {call.code() for call in calls}
        assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.CANCELLED}, codes
        return size

    def killed_client(self, rng):
        """A load generator that dies in the middle of its requests."""
        command = [settings.bin_dir() / "attendant", "load", f"--server={self.server.grpc}", "--model=tiny",
                   "--vocab=90", "--lengths=uniform:1:40", "--duration=60s", "--concurrency=16"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(0.2 + rng.random())
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        process.wait()
        self.stop.wait(1)
        return 1

    def slow_reader(self, rng):
        """Streams whose answers nobody reads."""
        message = request("tiny", [ids([9] * 40)] * 8, last_hidden_state=True).SerializeToString()
        try:
            with SlowClient(self.server.grpc) as slow:
                for _ in range(rng.randint(1, 4)):
                    slow.call(hostile.ENCODER + "EncodeStream", *[message] * 8)
                self.stop.wait(rng.random() * 3)
        except ConnectionError:  # a server without descriptors ends connections that it cannot serve
            return 0
        return 1

    def no_descriptors(self, rng):
        """More connections than the process has descriptors."""
        host, port = self.server.grpc.split(":")
        connections = [socket.create_connection((host, int(port))) for _ in range(400)]
        self.stop.wait(rng.random())
        for connection in connections:
            connection.close()
        self.stop.wait(2)
        return 1

    def reload(self, rng):
        """New weights for a model that is in use."""
        with self.disk:
            self._other_weights()
        self.stop.wait(rng.random())
        return 1

    def _other_weights(self):
        """Returns when the model `swap` answers with them. REQUIRES: disk is held."""
        message = request("swap", [ids([5, 6, 7])], pooled=pb.PooledOutput())
        with attendant.Client(self.server.grpc) as client:
            def answer():
                return client.stub.Encode(message, timeout=DEADLINE, wait_for_ready=True).pooled.data

            before = answer()
            self.negated = not self.negated
            write_model(self.repository / "swap", self.negated)
            wait_until("the new weights", 60, lambda: self.stop.is_set() or answer() != before)

    def corrupt_reload(self, rng):
        """New files that are no model, then good ones."""
        folder = self.repository / "swap"
        with self.disk:
            name = rng.choice(["config.json", "model.safetensors"])
            draft = self.repository.parent / "draft"
            draft.write_bytes(rng.choice([b"", b"{", rng.randbytes(5000), (folder / name).read_bytes()[:100]]))
            draft.rename(folder / name)
            self.stop.wait(3)
            self._other_weights()
        self.stop.wait(3)
        return 1

    def repository_gone(self, rng):
        """The repository's disk is taken away, and comes back."""
        away = self.repository.with_name("away")
        with self.disk:
            self.repository.rename(away)
            self.stop.wait(rng.random() * 3)
            away.rename(self.repository)
        self.stop.wait(5)
        return 1

    def wall_clock(self, rng):
        """Somebody sets the clock, forward or back."""
        set_clock(self.clock, rng.choice([-HOUR, HOUR]) * rng.random())
        self.stop.wait(rng.random() * 2)
        return 1

    def mangled_bytes(self, rng):
        """A valid message with some bytes changed, for any method."""
        case = rng.choice(CASES)
        data = bytearray(case.message)
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with memory.raw_channel(self.server.grpc) as channel:
            try:
                if case.stream:
                    list(channel.stream_stream(case.path)(iter([bytes(data)] * 4), timeout=DEADLINE))
                else:
                    channel.unary_unary(case.path)(bytes(data), timeout=DEADLINE)
            except grpc.RpcError as error:
                assert error.code() not in BAD_CODES, f"{case.path} {case.name}: {error.details()}"
        return 1


def set_clock(file, seconds):
    """What the server's wall clock is ahead of the true one: libfaketime reads this file."""
    draft = file.with_suffix(".draft")
    draft.write_text(f"{seconds:+.0f}\n", encoding="utf-8")
    draft.rename(file)
