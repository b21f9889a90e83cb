# SPDX-License-Identifier: Apache-2.0
"""Headers that gRPC 1.51 is known to mishandle cost the connection that sends them, and nobody else: docs/security.md.
HTTP/2 by hand, because every client library refuses to send them."""

import socket
import struct

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
ACK, END_STREAM, END_HEADERS = 1, 1, 4
HONEST = {b":method": b"POST", b":scheme": b"http", b":path": b"/grpc.health.v1.Health/Check", b":authority": b"x",
          b"content-type": b"application/grpc", b"te": b"trailers"}
# In HPACK's dynamic table once, then six times by its number: 27 KB of headers, more than the server takes.
TOO_MUCH = b"\x40\x03big\x7f" + bytes([0xbd, 0x1d]) + b"b" * 3900 + b"\xbe" * 6


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header of HPACK that is in no table."""
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def answer(server, headers, more=b""):
    """The bytes that come back for a health check with these headers, until the server has answered or closed."""
    host, port = server.grpc.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
        connection.recv(65536)  # the limit of headers counts once the client has confirmed the server's settings
        connection.sendall(frame(SETTINGS, ACK, 0))
        block = b"".join(literal(*header) for header in headers.items()) + more
        connection.sendall(frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, bytes(5)))
        received = b""
        while b"grpc-status" not in received:
            part = connection.recv(65536)
            if not part:
                break
            received += part
        return received


def is_serving(server):
    with grpc.insecure_channel(server.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=30).status == 1


def test_the_frames_are_right(server):
    assert b"grpc-status\x010" in answer(server, HONEST)


# CVE-2023-1428 and CVE-2023-32731
@pytest.mark.parametrize("header", [{}, {b"te": b"x"}, {b":scheme": b"x"}, {b"grpclb_client_stats": b"x"}])
def test_too_many_headers_after_a_wrong_one(server, header):
    assert b"grpc-status\x010" not in answer(server, HONEST | header, TOO_MUCH)
    assert is_serving(server)


# gRPC ends the process that would send such a header.
def test_a_tab_in_a_header_that_comes_back(server):
    parent = {b"traceparent": b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    received = answer(server, HONEST | parent | {b"tracestate": b"a=1,\tb=2"})
    assert b"grpc-status\x010" in received and b"a=1,b=2" in received
    assert is_serving(server)


# CVE-2023-32732
def test_a_binary_header_that_is_not_base64(server):
    assert b"grpc-status\x010" not in answer(server, HONEST | {b"x-bin": b"!!!"})
    assert is_serving(server)
