# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the conftest.py of several folders take in."""

import pytest

from harness.server import starting


@pytest.fixture
def start_server(tmp_path_factory):
    """start_server({name: folder}, "--flag=value", ...): a Server that listens; wait_ready() waits for its models."""
    with starting(tmp_path_factory.mktemp) as start:
        yield start
