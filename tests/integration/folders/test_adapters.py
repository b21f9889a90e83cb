# SPDX-License-Identifier: Apache-2.0
"""Task adapters of a folder (--model_adapter): one merged into the weights of each served name, against PyTorch."""

import http.client
import json
import subprocess

import numpy as np
import pytest

from harness import attendant, settings
from harness.attendant import pb, texts
from harness.server import serving

FOLDER = settings.ROOT / "tests" / "golden" / "adapters" / "jina_v3"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
NAMES = {adapter: adapter or "none" for adapter in EXPECTED}
REFUSED = {"unknown": FOLDER, "bert": settings.TINY_MODEL}
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: FOLDER for name in NAMES.values()} | REFUSED
    flags = [f"--model_adapter={name}={adapter}" for adapter, name in NAMES.items() if adapter]
    flags += [f"--model_adapter={name}=x" for name in REFUSED]
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32", *flags) as running:
        yield running


def assert_close(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCE * np.linalg.norm(expected)


@pytest.mark.parametrize("adapter", NAMES)
def test_embeddings_are_those_of_the_adapter_with_its_instruction(client, adapter):
    cases = EXPECTED[adapter]
    found = client.pooled(NAMES[adapter], texts(*(case["text"] for case in cases)))
    for row, case in zip(found, cases):
        assert_close(row, case["embedding"])
        assert client.pooled(NAMES[adapter], texts(case["text"])).tobytes() == row.tobytes()
    others = [np.array(EXPECTED[other][0]["embedding"]) for other in NAMES if other != adapter]
    assert min(np.abs(found[0] - other).max() for other in others) > 0.05


@pytest.mark.parametrize("adapter", NAMES)
def test_hidden_states_are_those_of_the_adapter(client, adapter):
    case = EXPECTED[adapter][0]
    assert_close(client.states(NAMES[adapter], [attendant.ids(case["ids"])])[0], case["states"])


def test_a_request_can_leave_the_instruction_out(client):
    adapter = "retrieval.query"
    case = EXPECTED[adapter][0]
    message = attendant.request(adapter, texts(case["text"]), pooled=pb.PooledOutput())
    message.prompt_name = ""
    plain = attendant.array(client.encode(message).pooled)
    message.sequences.sequences[0].text = CONFIG["task_instructions"][adapter] + case["text"]
    assert_close(attendant.array(client.encode(message).pooled)[0], case["embedding"])
    assert np.abs(plain[0] - case["embedding"]).max() > 0.01


def embeddings(server, name, task):
    """The code and the answer of /v1/embeddings, as Jina's clients ask."""
    body = json.dumps({"model": name, "input": EXPECTED[""][0]["text"], "task": task, "normalized": True})
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("POST", "/v1/embeddings", body)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_a_task_is_that_of_the_adapter(server):
    code, answer = embeddings(server, "retrieval.query", "retrieval.query")
    assert code == 200
    case = EXPECTED["retrieval.query"][0]
    assert case["text"] == EXPECTED[""][0]["text"]
    assert_close(np.array(answer["data"][0]["embedding"]), np.array(case["embedding"]) / np.linalg.norm(case["embedding"]))
    code, answer = embeddings(server, "retrieval.query", "retrieval.passage")
    assert code == 400
    assert "has the adapter 'retrieval.query' in its weights" in answer["error"]["message"]


def test_models_say_their_prompts_and_why_an_adapter_is_refused(client):
    models = client.models()
    assert models["retrieval.query"].default_prompt_name == "retrieval.query"
    assert models["none"].default_prompt_name == ""
    assert all(models[name].state == pb.MODEL_STATE_FAILED for name in REFUSED)
    assert "'x' is unknown" in models["unknown"].error
    assert "'retrieval.query', 'retrieval.passage', 'text-matching'" in models["unknown"].error
    assert "has no adapters" in models["bert"].error


def test_inspect_lists_the_adapters():
    done = subprocess.run([settings.bin_dir() / "attendant", "inspect", "--json", str(FOLDER)], capture_output=True, check=True)
    report = json.loads(done.stdout)
    assert report["can_be_served"] and report["adapters"] == CONFIG["lora_adaptations"]


def test_the_server_refuses_what_names_no_adapter():
    for value in ("a", "a=", "=x"):
        done = subprocess.run([settings.bin_dir() / "attendant-server", f"--model_adapter={value}", f"--model=a={FOLDER}",
                               "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and "NAME=ADAPTER" in done.stderr + done.stdout
