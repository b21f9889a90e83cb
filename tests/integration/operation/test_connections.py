# SPDX-License-Identifier: Apache-2.0
"""Connections that are many, idle or old, and a process without file descriptors, do not take the server away."""

import json
import resource
import socket
import subprocess
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from harness import exposition, settings
from harness.attendant import DEADLINE
from harness.server import few_descriptors, wait_until
from harness.slow_client import SETTINGS, frame

NEW_CONNECTION = [("grpc.use_local_subchannel_pool", 1)]


def check(target):
    """The answer to one health check on a new connection."""
    with grpc.insecure_channel(target, NEW_CONNECTION) as channel:
        return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE).status


def flood(target, number):
    """`number` connections on which nothing is sent."""
    host, port = target.split(":")
    return [socket.create_connection((host, int(port))) for _ in range(number)]


def closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(64) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def metric(server, name, **labels):
    return exposition.Page(server.get("/metrics")[1]).value(name, **labels)


def test_a_flood_of_connections(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, preexec_fn=few_descriptors).wait_ready()
    assert "at most 150 connections" in server.log()
    for _ in range(3):
        connections = flood(server.grpc, 400)
        wait_until("refusals", 30, lambda: metric(server, "attendant_connections_total", result="limit") > 0)
        wait_until("the end of what is too much", 30, lambda: sum(closed(c) for c in connections) >= 250)
        assert server.get("/healthz")[0] == 200
        for connection in connections:
            connection.close()
        wait_until("the end of the connections", 30, lambda: metric(server, "attendant_connections") == 0)
        assert check(server.grpc) == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("descriptors", [6, 12, 20])
def test_a_start_without_descriptors_says_so(descriptors):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [settings.bin_dir() / "attendant-server", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
               f"--model=tiny={settings.TINY_MODEL}"]
    ended = subprocess.run(command, preexec_fn=limit, capture_output=True, timeout=60, check=False, text=True)
    assert ended.returncode == 1, ended
    assert f"the process may have {descriptors} (ulimit -n)" in ended.stderr


def test_limits(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, "--max_connections=20",
                          "--max_connections_per_address=5").wait_ready()
    connections = flood(server.grpc, 10)
    wait_until("refusals", 30, lambda: sum(closed(c) for c in connections) == 5)
    assert metric(server, "attendant_connections_total", result="address_limit") == 5
    for connection in connections:
        connection.close()
    wait_until("the end of the connections", 30, lambda: metric(server, "attendant_connections") == 0)


def test_an_idle_connection_is_closed_after_its_time(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, "--max_connection_idle_s=2").wait_ready()
    with grpc.insecure_channel(server.grpc, NEW_CONNECTION) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE)
        next(watch)
        wait_until("the connection", 30, lambda: metric(server, "attendant_connections") == 1)
        start = time.monotonic()
        watch.cancel()
        wait_until("the end of the idle connection", 60, lambda: metric(server, "attendant_connections") == 0)
        assert metric(server, "attendant_connections_total", result="accepted") == 1
        assert time.monotonic() - start >= 1.9


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def test_calls_of_a_client_that_acknowledges_no_limit(start_server):
    """HTTP/2's limit on calls counts once the client has acknowledged it. This one does not, and sends no message."""
    server = start_server({"tiny": settings.TINY_MODEL}, "--max_connection_calls=20").wait_ready()
    head = b"\x83\x86" + field(b":path", b"/attendant.v1.Encoder/Encode") + field(b":authority", b"x") + \
        field(b"te", b"trailers") + field(b"content-type", b"application/grpc")
    headers, end_headers, calls, allowed = 1, 4, 1000, 2 * 20 + 64

    def open_calls():
        return [report["open_calls"] for report in json.loads(server.get("/connections")[1])["connections"]]

    with flood(server.grpc, 1)[0] as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        for call in range(calls):
            connection.sendall(frame(headers, end_headers, 2 * call + 1, head))
        wait_until("refusals", 30, lambda: metric(server, "attendant_refused_total", reason="connection_calls") ==
                   calls - allowed)
        wait_until("the end of the refused", 30, lambda: open_calls() == [allowed])
        assert check(server.grpc) == health_pb2.HealthCheckResponse.SERVING
    wait_until("the end of the calls", 30, lambda: not any(open_calls()))


def test_old_connections_are_closed_without_losing_a_call(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, "--max_connection_age_s=1").wait_ready()
    with grpc.insecure_channel(server.grpc, NEW_CONNECTION) as channel:
        stub = health_pb2_grpc.HealthStub(channel)

        def third_connection():
            for _ in range(100):
                stub.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE)
            return metric(server, "attendant_connections_total", result="accepted") >= 3

        wait_until("the third connection", 60, third_connection)


def test_plaintext_beyond_this_machine_is_warned_of(start_server):
    assert "not encrypted" not in start_server({"tiny": settings.TINY_MODEL}).wait_ready().log()
    open_to_all = start_server({"tiny": settings.TINY_MODEL}, "--listen=0.0.0.0:0").wait_ready()
    assert "without --tls_cert what they send and get is not encrypted" in open_to_all.log()


def test_reflection_can_be_off(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, "--reflection=off").wait_ready()
    with grpc.insecure_channel(server.grpc, NEW_CONNECTION) as channel:
        call = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        with pytest.raises(grpc.RpcError) as error:
            list(call(iter([b""]), timeout=DEADLINE))
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
