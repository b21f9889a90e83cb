# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: network namespaces, each with an address of 10.77.0.0/24, on a bridge that only they reach."""

import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def enter(namespace):
    """Moves this thread, and what it starts from now on, into the network of an open namespace."""
    if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns {namespace.name}")


class Lan:
    """`hub`, where the calling thread is while the context lasts, and hosts that add() makes."""

    def __init__(self):
        self.hub = f"attendant-{os.getpid()}"
        self.names = []
        self.before = open("/proc/thread-self/ns/net", "rb")

    def __enter__(self):
        self._make(self.hub)
        ip("-n", self.hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.hub, "address", "add", "10.77.0.1/24", "dev", "bridge")
        ip("-n", self.hub, "link", "set", "bridge", "up")
        with open(f"/run/netns/{self.hub}", "rb") as namespace:
            enter(namespace)
        return self

    def __exit__(self, *unused):
        enter(self.before)
        self.before.close()
        for name in self.names:
            ip("netns", "delete", name)

    def _make(self, name):
        ip("netns", "add", name)
        self.names.append(name)
        ip("-n", name, "link", "set", "lo", "up")

    def add(self, number):
        """A host with the address 10.77.0.NUMBER; a command in front of another one runs it there."""
        name = f"{self.hub}-{number}"
        self._make(name)
        ip("-n", self.hub, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", self.hub, "link", "set", f"port{number}", "master", "bridge", "up")
        ip("-n", name, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        return ["ip", "netns", "exec", name]
