# SPDX-License-Identifier: Apache-2.0
"""How a server splits the threads: each server runs with every split, and at each concurrency the best one is measured."""

import argparse

LOOK_SECONDS = 1  # of each window of the first look


def in_turn(server, ask):
    """What `ask` returns of the server, which runs meanwhile."""
    server.go_on()
    try:
        return ask(server)
    finally:
        server.pause()


def short(options):
    """The same options for a first look."""
    return argparse.Namespace(**vars(options) | {"seconds": min(LOOK_SECONDS, options.seconds)})


def best_splits(started, concurrencies, ask):
    """By the server's name and the concurrency: the split with the most inferences per second. `started`: by name, by
    split, a server; ask(server, concurrency) measures it. A server with one split is not asked."""
    best = {}
    for name, by_split in started.items():
        for concurrency in concurrencies:
            rates = {split: 0 for split in by_split}
            if len(by_split) > 1:
                rates = {split: in_turn(server, lambda running: ask(running, concurrency))["inferences_per_second"]
                         for split, server in by_split.items()}
            best[name, concurrency] = max(rates, key=rates.get)
    return best


def all_of(started):
    """Every server once."""
    return {id(server): server for by_split in started.values() for server in by_split.values()}.values()
