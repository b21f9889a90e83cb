# SPDX-License-Identifier: Apache-2.0
"""Fixtures: `fake`, a gRPC server in this process that answers as the test tells it, and `connect`, which makes its clients."""

import asyncio

from harness import client_package  # pylint: disable=unused-import  # before fake_server imports the package

import pytest

import attendant
from fake_server import FakeServer

FAST = attendant.Retry(max_attempts=4, first_delay=0.001, max_delay=0.002)


class Awaiting:
    """An AsyncClient with the methods of a Client."""

    def __init__(self, target, **options):
        self.target, self.options = target, options

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __getattr__(self, name):
        def method(*arguments, **keywords):
            async def call():
                async with attendant.AsyncClient(self.target, **self.options) as client:
                    return await getattr(client, name)(*arguments, **keywords)
            return asyncio.run(call())
        return method


@pytest.fixture
def fake():
    server = FakeServer()
    yield server
    server.stop()


@pytest.fixture(params=[attendant.Client, Awaiting])
def connect(request, fake):
    """connect(**options): a client of either kind."""
    return lambda **options: request.param(fake.target, **{"model": "m", "retry": FAST, **options})
