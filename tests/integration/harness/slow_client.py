# SPDX-License-Identifier: Apache-2.0
"""A gRPC client in plain HTTP/2 that sends and never reads: its windows stay at 64 KiB for each stream and for all."""

import socket

DATA, HEADERS, SETTINGS = 0, 1, 4
ACK, END_STREAM, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def header(name, value):
    """HPACK: a literal without indexing."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class SlowClient:
    """One connection. Requests of all its streams have at most 64 KiB together: the server's window."""

    def __init__(self, target):
        host, port = target.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        self.streams = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, path, *messages):
        """Starts a call that sends these messages and stays open."""
        stream = 2 * self.streams + 1
        self.streams += 1
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
                  "content-type": "application/grpc", "te": "trailers"}
        head = b"".join(header(*field) for field in fields.items())
        body = b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)
        frames = [frame(DATA, 0, stream, body[i:i + 16384]) for i in range(0, len(body), 16384)]
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, head) + b"".join(frames))
