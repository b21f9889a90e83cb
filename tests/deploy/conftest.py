# SPDX-License-Identifier: Apache-2.0
"""Fixtures: `start_server`; `start_shared_server`, the same for all tests of a file; `tool`, a program of Debian's."""

import shutil

import pytest

from harness.fixtures import start_server  # pylint: disable=unused-import
from harness.server import starting


@pytest.fixture(scope="module")
def start_shared_server(tmp_path_factory):
    with starting(tmp_path_factory.mktemp) as start:
        yield start


@pytest.fixture
def tool():
    """tool("prometheus"): its path. The test is skipped where the program is not installed."""
    def find(name):
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed: deploy/install-deps.sh test installs it")
        return path
    return find
