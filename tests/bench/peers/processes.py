# SPDX-License-Identifier: Apache-2.0
"""A peer with a process for each stream: in one process, Python's interpreter lock would make its streams wait."""

import multiprocessing

from engine import end_with_parent
from streams import Streams


def serve(connection, load):
    engine, prepared = load(), []
    connection.send((engine.version, None))
    while True:
        kind, value = connection.recv()
        if kind == "prepare":
            prepared.append(engine.prepare(value))
        else:
            engine.run(prepared[value])
        connection.send((None, None))


def answer(connection, load):
    end_with_parent()
    try:
        serve(connection, load)
    except Exception as error:  # whatever a peer may raise is its result
        connection.send((None, f"{type(error).__name__}: {error}"))


class Processes(Streams):
    """`load` makes the peer in each process; this process must not have loaded its library, since it forks."""

    def __init__(self, load, streams):
        self.streams = streams
        self.prepared = 0
        self.connections = [self.start(load) for _ in range(streams)]
        self.version = [self.receive(connection) for connection in self.connections][0]

    @staticmethod
    def start(load):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.get_context("fork").Process(target=answer, args=(theirs, load), daemon=True).start()
        theirs.close()
        return ours

    @staticmethod
    def receive(connection):
        value, error = connection.recv()
        if error:
            raise RuntimeError(error)
        return value

    def prepare(self, batch):
        """The number of the batch, in every process."""
        for connection in self.connections:
            connection.send(("prepare", batch))
        for connection in self.connections:
            self.receive(connection)
        self.prepared += 1
        return self.prepared - 1

    def run(self, number, stream):
        self.connections[stream].send(("run", number))
        self.receive(self.connections[stream])
