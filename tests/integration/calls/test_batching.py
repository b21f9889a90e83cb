# SPDX-License-Identifier: Apache-2.0
"""A sequence's answer is the same bits whatever it was batched with, and batching costs a lone request nothing."""

import concurrent.futures
import random
import statistics

from harness import attendant, settings
from harness.attendant import ids, pb, request, texts

CALLERS = 16
REQUESTS = 320


def test_batched_is_alone_bit_for_bit(client, scrape, sentences):
    rows = [ids(row) for row in sentences[1]] + texts(*sentences[0])
    alone = [client.pooled("minilm", [row]).tobytes() for row in rows]
    alone_states = [client.states("minilm", [row])[0].tobytes() for row in rows]
    before = scrape()

    def ask(seed):
        picked = random.Random(seed).choices(range(len(rows)), k=1 + seed % 5)
        if seed % 8 == 0:
            states = client.states("minilm", [rows[i] for i in picked])
            return [state.tobytes() for state in states] == [alone_states[i] for i in picked]
        pooled = client.pooled("minilm", [rows[i] for i in picked])
        return [row.tobytes() for row in pooled] == [alone[i] for i in picked]

    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        same = list(pool.map(ask, range(REQUESTS)))
    assert all(same), f"{same.count(False)} of {REQUESTS} answers differ from the lone ones"

    after = scrape()
    batches = (after.value("attendant_batches_total", model="minilm")
               - before.value("attendant_batches_total", model="minilm"))
    assert batches < REQUESTS, "no batch ever held two requests: this test showed nothing"


def lone_queue_us(server, requests):
    """Time in the queue of requests that are sent one after the other, and the batches they made."""
    with attendant.Client(server.grpc) as client:
        message = request("tiny", [ids([5, 6, 7])], pooled=pb.PooledOutput())
        client.encode(message)
        return [client.encode(message).timings.queue_us for _ in range(requests)]


def test_batching_does_not_delay_a_lone_request(server, start_server):
    delay_us = 500_000
    waiting = start_server({"tiny": settings.TINY_MODEL}, f"--max_queue_delay_us={delay_us}").wait_ready()
    assert min(lone_queue_us(waiting, 3)) >= delay_us * 0.9, "the flag does nothing: this test shows nothing"
    assert statistics.median(lone_queue_us(server, 50)) < delay_us / 10
