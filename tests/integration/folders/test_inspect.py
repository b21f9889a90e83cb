# SPDX-License-Identifier: Apache-2.0
"""attendant inspect: what it says of folders is what the server makes of them."""

import json
import shutil
import subprocess

import pytest

from harness import attendant, settings
from harness.server import Server

GOLDEN = settings.ROOT / "tests" / "golden"
FOLDERS = {"every_pooling": GOLDEN / "sentence" / "every_pooling", "old_flags": GOLDEN / "sentence" / "old_flags",
           "prompts": GOLDEN / "sentence" / "prompts", "roberta_classifier": GOLDEN / "classifier" / "roberta_classifier",
           "bert_reranker": GOLDEN / "classifier" / "bert_reranker", "bert_splade": GOLDEN / "tokens" / "bert_splade",
           "bge_m3": GOLDEN / "tokens" / "bge_m3", "bert_tokens": GOLDEN / "tokens" / "bert_tokens",
           "pylate_bert": GOLDEN / "colbert" / "pylate_bert", "stanford_bert": GOLDEN / "colbert" / "stanford_bert",
           "tiny_mpnet": GOLDEN / "encoder" / "tiny_mpnet"}


def inspect(folder, *flags):
    done = subprocess.run([settings.bin_dir() / "attendant", "inspect", *flags, str(folder)], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"), FOLDERS, "--dtype=f32")
    try:
        running.wait_ready()
        with attendant.Client(running.grpc) as client:
            yield client.models()
    finally:
        running.stop()


@pytest.mark.parametrize("name", FOLDERS)
def test_it_says_what_the_server_says(models, name):
    code, out = inspect(FOLDERS[name], "--json")
    report, served = json.loads(out), models[name]
    assert (code, report["can_be_served"]) == (0, True)
    for field in ("layers", "heads", "hidden", "vocab", "max_text_tokens", "embedding_dims", "normalize", "default_prompt_name"):
        assert report[field] == getattr(served, field), field
    assert report["labels"] == list(served.labels) and report["prompt_names"] == list(served.prompt_names)
    assert len(report["pooling"].split("+")) == len(served.poolings)
    assert ("rerank" in report["tasks"]) == ("scores" in served.tasks and len(served.labels) < 2)
    assert ("classify" in report["tasks"]) == (len(served.labels) > 1)
    assert [task for task in report["tasks"] if task not in ("embed", "encode", "rerank", "classify")] == \
        [task for task in served.tasks if task != "scores"]
    assert report["token_labels"] == list(served.token_labels)
    assert set(report["memory"]) == {"f32", "bf16", "int8"}
    code, text = inspect(FOLDERS[name])
    assert code == 0 and "can be served" in text and f"hidden {served.hidden}" in text


def test_it_says_why_a_folder_cannot_be_served(tmp_path):
    code, text = inspect(tmp_path / "none")
    assert (code, "cannot be served: NOT_FOUND" in text) == (1, True)
    folder = shutil.copytree(FOLDERS["old_flags"], tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    code, out = inspect(folder, "--json")
    problem = json.loads(out)["problem"]
    assert code == 1 and "pytorch_model.bin is a Python pickle" in problem and "python3 -c" in problem


def test_it_takes_one_folder():
    done = subprocess.run([settings.bin_dir() / "attendant", "inspect"], capture_output=True, text=True)
    assert (done.returncode, "takes one folder" in done.stderr) == (2, True)
