# SPDX-License-Identifier: Apache-2.0
"""One peer in a process of its own: answers on standard output what engine_bench --commands answers.

    worker.py PEER FOLDER DTYPE STREAMS THREADS SECONDS     THREADS of each stream

    rate LEN ... [/ LEN ...] ...   the batches between the slashes are padded to their longest sequence
    latency LEN                    one sequence at a time; as embed, of a peer with one stream
    embed ID ...
"""

import json
import os
import random
import sys
import time

import numpy

import peer
import streams
from ways import Split

VOCAB = 30522


class Worker:
    def __init__(self, engine, seconds):
        self.engine = engine
        self.seconds = seconds
        self.prepared = {}

    def batches(self, words):
        """Made, and run once on every stream so that the library has seen their shapes, when first asked for."""
        if words not in self.prepared:
            lens = [[int(word) for word in batch.split()] for batch in words.split("/")]
            ids = random.Random(7)
            batches = [self.engine.prepare([[ids.randrange(VOCAB) for _ in range(n)] for n in batch]) for batch in lens]
            self.engine.run_all(batches, streams.warm_up(len(batches), self.engine.streams))
            self.prepared[words] = (batches, sum(map(sum, lens)))
        return self.prepared[words]

    def rate(self, words):
        batches, tokens = self.batches(words)
        ended = self.engine.run_all(batches, streams.cycle(len(batches), self.engine.streams, self.seconds))
        return {"tokens_per_second": tokens * streams.rate(ended, len(batches), self.engine.streams)}

    def latency(self, words):
        (batch,), _ = self.batches(words)
        self.engine.run(batch)
        times, end = [], time.perf_counter() + self.seconds
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            self.engine.run(batch)
            times.append(1e3 * (time.perf_counter() - begin))
        return {"times_ms": times}

    def embed(self, words):
        batch = self.engine.prepare([[int(word) for word in words.split()]])
        mean = self.engine.states(self.engine.run(batch))[0].astype(numpy.float64).mean(axis=0)
        return {"embedding": (mean / numpy.linalg.norm(mean)).tolist()}


def main():
    name, folder, dtype, number, threads, seconds = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(fields):
        print(json.dumps(fields), file=answers, flush=True)

    try:
        worker = Worker(peer.load(name, folder, dtype, Split(int(number), int(threads))), float(seconds))
    except Exception as error:  # whatever a peer may raise is its result
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    answer({"ready": worker.engine.version})
    for line in sys.stdin:
        command, _, words = line.strip().partition(" ")
        try:
            answer({"rate": worker.rate, "latency": worker.latency, "embed": worker.embed}[command](words))
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})


main()
