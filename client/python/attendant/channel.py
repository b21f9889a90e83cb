# SPDX-License-Identifier: Apache-2.0
"""Connections."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

Path = str | pathlib.Path
ChannelOptions = Sequence[tuple[str, Any]]

_OPTIONS = (
    ("grpc.max_send_message_length", -1),     # the server has limits
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_retries", 0),               # retry.py does that
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5000),
    ("grpc.use_local_subchannel_pool", 1),    # a connection for each client
)
_LAST_PORT = 65535
_MAX_PEM_BYTES = 16 << 20
_LOOPBACK = ("127.", "localhost:", "[::1]", "unix:")


@dataclass(frozen=True)
class Tls:
    """PEM files. Without `ca_file` the server's certificate is checked with gRPC's own list of authorities; `cert_file` and
    `key_file` are this client's. OSError: a file cannot be read. ValueError: it has no certificate, or
    no key, or more than 16 MiB."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file come together")
        return grpc.ssl_channel_credentials(
            _pem(self.ca_file, "CERTIFICATE"), _pem(self.key_file, "PRIVATE KEY"), _pem(self.cert_file, "CERTIFICATE"))


def _pem(file: Path | None, kind: str) -> bytes | None:
    """A file with a block of PEM whose label ends with `kind`. Of an empty one gRPC would take its own authorities."""
    if file is None:
        return None
    with open(file, "rb") as opened:
        contents = opened.read(_MAX_PEM_BYTES + 1)
    if len(contents) > _MAX_PEM_BYTES:  # /dev/zero has no end
        raise ValueError(f"the PEM file {file} has more than {_MAX_PEM_BYTES} bytes")
    if f"{kind}-----".encode() not in contents:
        raise ValueError(f"the PEM file {file} has no {kind.lower()}")
    return contents


def _has_wrong_port(target: str) -> bool:
    """gRPC reads a port with atoi, which leaves out what follows the number, and takes the low 16 bits: another server
    could answer. A target may have several addresses, as ipv4:A:8001,B:8001."""
    if target.startswith(("unix:", "unix-abstract:")):
        return False
    ports = [address.rpartition(":")[2] for address in target.split(",") if ":" in address]
    numbers = [int(number[0]) for port in ports if (number := re.match(r"\s*[+-]?\d+", port, re.ASCII))]
    return not all(0 <= number <= _LAST_PORT for number in numbers)


def _arguments(target: str, more: ChannelOptions) -> list[tuple[str, Any]]:
    """A proxy from the environment cannot reach this machine's own loopback."""
    if not isinstance(target, str):
        raise TypeError(f"target is {target!r}: it must be a text, HOST:PORT")
    if not target or _has_wrong_port(target):
        raise ValueError(f"target is {target!r}: it must be HOST:PORT, with a port from 0 to {_LAST_PORT}")
    if target.startswith(("http://", "https://")):
        raise ValueError(f"target is {target!r}: it must be HOST:PORT, of the server's gRPC port; tls=Tls() encrypts")
    proxy = [("grpc.enable_http_proxy", 0)] if target.startswith(_LOOPBACK) else []
    return [*_OPTIONS, *proxy, *more]


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    if not isinstance(tls, Tls):
        raise TypeError(f"tls is {tls!r}: it must be Tls(), or None")
    return tls.credentials()


def connect(target: str, tls: Tls | None, more: ChannelOptions) -> grpc.Channel:
    arguments = _arguments(target, more)
    return (grpc.insecure_channel(target, arguments) if tls is None
            else grpc.secure_channel(target, _credentials(tls), arguments))


def connect_async(target: str, tls: Tls | None, more: ChannelOptions) -> grpc.aio.Channel:
    arguments = _arguments(target, more)
    return (grpc.aio.insecure_channel(target, arguments) if tls is None
            else grpc.aio.secure_channel(target, _credentials(tls), arguments))
