# SPDX-License-Identifier: Apache-2.0
"""Fixtures: `server`, one for all tests, with the real model `minilm` and the golden `tiny`, in f32 so that their answers
compare with PyTorch's; `start_server`, for tests that need their own. Both end by SIGTERM, and the exit code must be 0."""

import pytest

from harness import attendant, exposition, golden, settings
from harness.fixtures import start_server  # pylint: disable=unused-import
from harness.server import serving


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    models = {"minilm": settings.model_dir(), "tiny": settings.TINY_MODEL}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


@pytest.fixture
def client(server):
    with attendant.Client(server.grpc) as connected:
        yield connected


@pytest.fixture
def scrape(server):
    """scrape(): the metrics as they are now."""
    def page():
        code, text = server.get("/metrics")
        assert code == 200
        return exposition.Page(text)
    return page


@pytest.fixture(scope="session")
def sentences():
    return golden.sentences("all-MiniLM-L6-v2")
