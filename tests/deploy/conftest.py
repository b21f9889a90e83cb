# SPDX-License-Identifier: Apache-2.0
"""Fixtures: `start_server`, servers that end by SIGTERM and whose exit code must be 0 unless the test killed them;
`start_shared_server`, the same for all tests of a file; `tool`, a program of Debian's."""

import contextlib
import shutil
import signal

import pytest

from harness.server import Server


@contextlib.contextmanager
def starting(tmp_path_factory):
    """start({name: folder}, "--flag=value", ...): a Server that listens; wait_ready() waits for its models."""
    started = []

    def start(models, *arguments, **options):
        started.append(Server(tmp_path_factory.mktemp("server"), models, *arguments, **options))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() != -signal.SIGKILL:
            running.stop()


@pytest.fixture
def start_server(tmp_path_factory):
    with starting(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="module")
def start_shared_server(tmp_path_factory):
    with starting(tmp_path_factory) as start:
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
