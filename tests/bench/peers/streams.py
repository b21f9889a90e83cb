# SPDX-License-Identifier: Apache-2.0
"""Batches on several streams at the same time, and their rate. Attendant's side: tests/bench/streams.h."""

import concurrent.futures
import itertools
import math
import threading
import time


class Shared:
    """An iterator that several threads may draw from."""

    def __init__(self, iterable):
        self.iterator = iter(iterable)
        self.lock = threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            return next(self.iterator)


def warm_up(batches, streams):
    """Numbers of batches: each one for every stream."""
    return (number for number in range(batches) for _ in range(streams))


def cycle(batches, streams, seconds, clock=time.perf_counter):
    """Numbers of batches, from 0 and again from 0: one for each stream before the clock of `rate` starts, then whole passes
    until the time is over. The number of batches in these passes is a multiple of `streams`."""
    end, whole = clock() + seconds, math.lcm(batches, streams)
    for given in itertools.count():
        if given > streams and (given - streams) % whole == 0 and clock() >= end:
            return
        yield given % batches


def rate(ended, batches, streams):
    """Passes over all batches per second. `ended`: when each batch of `cycle` was complete, ascending."""
    return (len(ended) - streams) / batches / (ended[-1] - ended[streams - 1])


class Streams:
    """What runs `streams` batches at the same time: run(batch, stream) runs one of them."""
    streams = 1

    def run_all(self, batches, numbers):
        """Runs the batches of these numbers, each on the next free stream: when each was complete, ascending."""
        numbers, ended = Shared(numbers), []

        def work(stream):
            for number in numbers:
                self.run(batches[number], stream)
                ended.append(time.perf_counter())

        if self.streams == 1:
            work(0)
        else:
            with concurrent.futures.ThreadPoolExecutor(self.streams) as pool:
                list(pool.map(work, range(self.streams)))
        return sorted(ended)
