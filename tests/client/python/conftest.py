# SPDX-License-Identifier: Apache-2.0
"""Fixture: `fake`, a gRPC server in this process that answers as the test tells it."""

from harness import client_package  # pylint: disable=unused-import  # before fake_server imports the package

import pytest

from fake_server import FakeServer


@pytest.fixture
def fake():
    server = FakeServer()
    yield server
    server.stop()
