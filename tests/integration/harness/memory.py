# SPDX-License-Identifier: Apache-2.0
"""A server's memory as Linux counts it, and channels that send bytes as they are."""

import pathlib

import grpc

from harness import settings


def status_bytes(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {field}")


def peak_bytes(pid):
    """The most resident memory that the process has had."""
    return status_bytes(pid, "VmHWM")


def resident_bytes(pid):
    return status_bytes(pid, "VmRSS")


def reset_peak(pid):
    """From now on peak_bytes is the most since this call."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="utf-8")


def check_growth(what, grown, limit):
    """Fails where memory has grown by more bytes than `limit`; of a sanitizer's memory, says how much only."""
    print(f"{what}: {grown} bytes of memory, at most {limit}")
    assert settings.SANITIZED or grown <= limit, what


def raw_channel(target):
    """A connection of its own, without limits of the client."""
    return grpc.insecure_channel(target, [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1),
                                          ("grpc.use_local_subchannel_pool", 1)])
