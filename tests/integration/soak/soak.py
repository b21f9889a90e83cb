#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server under honest traffic and every trouble at once, for as long as you like; then drains under load.

    tests/integration/python.sh tests/integration/soak/soak.py --seconds 3600 --drains 100

Exit code 0: every honest request was answered once, with the bits that it has on a quiet server; memory, descriptors
and threads did not grow; every drain answered what it had admitted and ended with exit code 0; no sanitizer reported
anything."""

import argparse
import contextlib
import glob
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
# pylint: disable=wrong-import-position
from harness import exposition, memory, settings
from harness.model_folder import write_model
from harness.server import DESCRIPTORS, Server, few_descriptors, wait_until
from drains import drains
from traffic import Traffic, quiet_answers
from troubles import Troubles, set_clock

FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="how long the troubles last (default 600)")
    parser.add_argument("--drains", type=int, default=10, help="restarts under load (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="of the troubles' choices (default 1)")
    parser.add_argument("--max_growth_mib", type=float, default=48,
                        help="how much resident memory may grow after the first third (default 48)")
    parser.add_argument("--min_cancellations", type=int, default=0, help="go on until there were so many (default 0)")
    parser.add_argument("--min_reloads", type=int, default=0, help="go on until there were so many (default 0)")
    parser.add_argument("--without", nargs="+", default=[], metavar="TROUBLE", help="troubles to leave out")
    return parser.parse_args(arguments)


def movable_clock(options, folder):
    """The environment in which a program's wall clock follows folder/clock; its steady clock stays true."""
    if "wall_clock" in options.without:
        return {}
    library = glob.glob(FAKETIME)
    assert library, "no libfaketime: run deploy/install-deps.sh test"
    set_clock(folder / "clock", 0)
    return {"LD_PRELOAD": library[0], "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@contextlib.contextmanager
def environment(values):
    """For the processes that start meanwhile."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def start(options, folder):
    write_model(folder / "repository" / "swap", False)
    with environment(movable_clock(options, folder)):
        return Server(folder, {"tiny": settings.TINY_MODEL}, "--dtype=f32", f"--model_repository={folder}/repository",
                      "--model_control=poll", "--repository_poll_s=1", "--access_log=/dev/full",
                      "--max_queued_tokens=1000000", preexec_fn=few_descriptors).wait_ready()


def both_answers(server, folder):
    """What each message to the model `swap` may be answered with."""
    first = quiet_answers(server.grpc, "swap")
    write_model(folder / "repository" / "swap", True)

    def changed():
        now = quiet_answers(server.grpc, "swap")
        return now if all(new != old for new, old in zip(now, first)) else None

    return list(map(set, zip(first, wait_until("the new weights", 30, changed))))


class Holdings:
    """What the process holds."""

    def __init__(self, server):
        self.memory = memory.resident_bytes(server.pid)
        self.descriptors = len(os.listdir(f"/proc/{server.pid}/fd"))
        self.threads = len(os.listdir(f"/proc/{server.pid}/task"))

    def __str__(self):
        return f"{self.memory / 2**20:.1f} MiB, {self.descriptors} descriptors, {self.threads} threads"


def settle(server):
    """Waits until nothing is under way."""
    def idle():
        page = exposition.Page(server.get("/metrics")[1])
        return all(page.value(f"attendant_{name}") == 0
                   for name in ("queue_requests", "inflight_requests", "connections"))

    wait_until("an idle server", 60, idle)


def enough(options, counts):
    """Whether there were as many cancellations and reloads as wanted."""
    return (counts.get("cancel_storm", 0) >= options.min_cancellations
            and counts.get("reload", 0) >= options.min_reloads)


def soak(options, folder):
    server = start(options, folder)
    try:
        allowed = {"tiny": [{answer} for answer in quiet_answers(server.grpc, "tiny")],
                   "swap": both_answers(server, folder)}
        stop = threading.Event()
        troubles = Troubles(server, folder, options.seed, stop, options.without)
        with Traffic(server.grpc, allowed, stop) as traffic, troubles:
            stop.wait(options.seconds / 3)
            warm = Holdings(server)
            stop.wait(options.seconds * 2 / 3)
            while not stop.is_set() and not enough(options, troubles.counts):
                stop.wait(0.1)
        faults = traffic.faults + troubles.faults
        assert server.process.poll() is None, f"the server ended with {server.process.returncode}:\n{server.log()}"
        settle(server)
        last = Holdings(server)
    finally:
        server.stop()
    print(f"{traffic.answers} honest answers; {troubles.counts}")
    print(f"after a third: {warm}; at the end: {last}")
    for fault in faults:
        print(f"FAULT {fault}")
    assert not faults
    assert traffic.answers > 0 and len(troubles.counts) == len(troubles.threads), "some trouble never happened"
    assert last.memory - warm.memory <= options.max_growth_mib * 2**20, "memory grew"
    assert last.descriptors <= DESCRIPTORS // 4 and last.threads <= warm.threads + 4


def main(arguments):
    options = parse(arguments)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attendant-soak-") as folder:
        soak(options, pathlib.Path(folder))
        if options.drains > 0:
            drains(options.drains, pathlib.Path(folder))
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
