# SPDX-License-Identifier: Apache-2.0
"""Fixtures: `client`, a Client on the server of all tests; `heads`, a server with rerankers and classifiers."""

from harness import client_package  # pylint: disable=unused-import  # makes the package importable

import pytest

import attendant
from harness import settings
from harness.server import serving


@pytest.fixture
def client(server):
    with attendant.Client(server.grpc, model="minilm") as connected:
        yield connected


@pytest.fixture(scope="session")
def heads(tmp_path_factory):
    folder = settings.ROOT / "tests" / "golden" / "classifier"
    with serving(tmp_path_factory.mktemp("server"),
                 {name: folder / name for name in ("bert_reranker", "roberta_classifier")}, "--dtype=f32") as running:
        yield running
