# SPDX-License-Identifier: Apache-2.0
"""Clients name a version of a model. Labels are those of that version."""

import json
import shutil
import subprocess

import pytest

from harness import client_package  # pylint: disable=unused-import  # makes the package importable
from harness import settings
from harness.server import Server

import attendant

GOLDEN = settings.ROOT / "tests/golden/classifier"
LABELS = {1: ("bad", "fair", "good"), 2: ("LABEL_0", "LABEL_1")}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    for version, name in ((1, "roberta_classifier"), (2, "distilbert_classifier")):
        shutil.copytree(GOLDEN / name, repository / "classifier" / str(version))
    running = Server(tmp_path_factory.mktemp("server"), {}, f"--model_repository={repository}", "--max_model_versions=2")
    try:
        yield running.wait_ready()
    finally:
        running.stop()


@pytest.mark.parametrize("version, labels", [(None, LABELS[2]), *LABELS.items()])
def test_labels_of_a_version(server, version, labels):
    with attendant.Client(server.grpc, model_version=version) as client:
        assert client.classify(["a film", "a book"], batch_size=1).labels == labels
        with pytest.raises(attendant.NotFoundError, match="no version '3'"):
            client.with_options(model_version=3).classify("a film")


@pytest.mark.parametrize("version, labels", [(0, LABELS[2]), *LABELS.items()])
def test_the_command_names_a_version(server, version, labels):
    arguments = [settings.bin_dir() / "attendant", "classify", f"--server={server.grpc}", "--json", "--top=9"]
    line = subprocess.run([*arguments, f"--model_version={version}", "a film"], check=True, capture_output=True).stdout
    assert {each["label"] for each in json.loads(line)["labels"]} == set(labels)


@pytest.mark.parametrize("version, code", [(1, 0), (2, 0), (3, 1)])
@pytest.mark.parametrize("protocol", ["attendant", "kserve", "kserve_http"])
def test_a_load_names_a_version(server, protocol, version, code):
    address = server.http if protocol == "kserve_http" else server.grpc
    done = subprocess.run([settings.bin_dir() / "attendant", "load", f"--server={address}", f"--protocol={protocol}",
                           "--model=classifier", f"--model_version={version}", "--requests=20", "--warmup=0",
                           "--lengths=fixed:8", "--json"], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    if code == 0:
        assert json.loads(done.stdout)["model_version"] == version
