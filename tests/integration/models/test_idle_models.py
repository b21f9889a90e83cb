# SPDX-License-Identifier: Apache-2.0
"""What clients must know of a model they know while it is idle too."""

import dataclasses
import json
import subprocess

import numpy as np
import pytest

from harness import client_package  # pylint: disable=unused-import  # makes the package importable
from harness import settings
from harness.server import serving, wait_until

import attendant

GOLDEN = settings.ROOT / "tests/golden"
FOLDERS = {"classifier": GOLDEN / "classifier/roberta_classifier", "prompts": GOLDEN / "sentence/prompts"}
LABELS = ("bad", "fair", "good")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), FOLDERS, "--unload_idle_s=1", "--dtype=f32") as running:
        yield running


@pytest.fixture
def client(server):
    """All models are idle."""
    with attendant.Client(server.grpc) as connected:
        wait_until("idleness", 30, lambda: {model.state for model in connected.models()} == {"idle"})
        yield connected


def command(server, *arguments):
    done = subprocess.run([settings.bin_dir() / "attendant", arguments[0], f"--server={server.grpc}", "--json", *arguments[1:]],
                          check=True, capture_output=True)
    return json.loads(done.stdout)


def test_idle_models_are_described_as_they_were(client):
    def loaded(name):
        client.embed("a", model=name)
        return next((model for model in client.models() if model.name == name and model.state == "ready"), None)

    idle = {model.name: model for model in client.models()}
    for name in FOLDERS:
        ready = wait_until("a model that is not idle again", 30, lambda name=name: loaded(name))
        assert ready.layers > 0
        assert idle[name] == dataclasses.replace(ready, state="idle")


def test_labels(client):
    assert client.classify("a film", model="classifier").labels == LABELS


def test_the_command_has_labels(client, server):
    answer = command(server, "classify", "--model=classifier", "--top=9", "a film")
    assert {each["label"] for each in answer["labels"]} == set(LABELS)


def test_the_last_layer(client, server):
    layers = {model.name: model.layers for model in client.models()}["classifier"]
    assert layers > 1
    assert command(server, "heatmap", "--model=classifier", "--layer=last", "a film")["layer"] == layers - 1


def test_prompts(client):
    encoder = attendant.SentenceEncoder(client, "prompts")
    found = encoder.encode_document("a cat")
    assert np.array_equal(found, client.embed("a cat", model="prompts", prompt_name="document"))
    assert not np.array_equal(found, client.embed("a cat", model="prompts")), "its default is another prompt"
    assert np.array_equal(encoder.encode_query("a cat"), client.embed("a cat", model="prompts", prompt_name="query"))
