# SPDX-License-Identifier: Apache-2.0
"""One server after the other on the same ports, each stopped by SIGTERM under load. Honest clients stay all the time, and
send again what is UNAVAILABLE; a burst of calls around each SIGTERM is sent once."""

import contextlib
import pathlib
import random
import socket
import threading

import grpc

from harness import attendant, settings
from harness.attendant import DEADLINE, ids, pb, request
from harness.server import Server, wait_until
from traffic import RECONNECTING, PatientTraffic, quiet_answers

IN_FLIGHT = 64
COPIES = 2
ADDRESS = "127.0.0.1"
EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def own_ports():
    """Two free ports that no connection is given: a client that looks for a server that is away could meet itself."""
    lowest = int(EPHEMERAL.read_text(encoding="utf-8").split()[0])
    free = []
    for port in random.sample(range(lowest // 2, lowest), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((ADDRESS, port))
            free.append(port)
        if len(free) == 2:
            return free
    raise AssertionError(f"no free ports below {lowest}")


def start(folder, number, ports):
    own = folder / f"drain{number}"
    own.mkdir()
    return Server(own, {"tiny": settings.TINY_MODEL}, "--dtype=f32", listen=(ADDRESS, *ports)).wait_ready()


def drain(server, number):
    """SIGTERM between two halves of a burst. Returns how many of its calls were answered and how many refused."""
    message = request("tiny", [ids([5, 6, 7] * 13)] * 8, pooled=pb.PooledOutput())
    with attendant.Client(server.grpc, *RECONNECTING) as client:
        expected = client.encode(message).pooled.data
        calls = [client.stub.Encode.future(message, timeout=DEADLINE) for _ in range(IN_FLIGHT)]
        calls[number % IN_FLIGHT].result()
        server.terminate()
        calls += [client.stub.Encode.future(message, timeout=DEADLINE) for _ in range(IN_FLIGHT)]
        codes = [call.code() for call in calls]
        answers = {call.result().pooled.data for call, code in zip(calls, codes) if code == grpc.StatusCode.OK}
    assert server.wait() == 0, server.log()
    assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}, set(codes)
    assert answers == {expected}
    return codes.count(grpc.StatusCode.OK), codes.count(grpc.StatusCode.UNAVAILABLE)


def wait_for_answers(traffic):
    before = traffic.answers
    wait_until("honest answers", 60, lambda: traffic.stop.is_set() or traffic.answers > before)


def drains(count, folder):
    """So many restarts. Ends when each request of the honest clients has its answer."""
    ports, stop = own_ports(), threading.Event()
    server = start(folder, 0, ports)
    allowed = {"tiny": [{answer} for answer in quiet_answers(server.grpc, "tiny")]}
    answered = refused = 0
    try:
        with PatientTraffic(server.grpc, allowed, stop, COPIES) as traffic:
            for number in range(count):
                wait_for_answers(traffic)
                ok, late = drain(server, number)
                answered, refused = answered + ok, refused + late
                server = start(folder, number + 1, ports)
                if stop.is_set():
                    break
    finally:
        server.stop()
    for fault in traffic.faults:
        print(f"FAULT {fault}")
    print(f"{number + 1} drains: {answered} calls of bursts answered, {refused} refused; "
          f"{traffic.answers} honest answers after {traffic.retries} retries")
    assert not traffic.faults
    assert traffic.retries > 0, "no client noticed a drain: this shows nothing"
