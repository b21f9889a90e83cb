# SPDX-License-Identifier: Apache-2.0
"""Folders of sentence-transformers with every pooling and module, from text to embedding, against sentence-transformers."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import tritonclient.grpc as triton

from harness import attendant, settings
from harness.attendant import array, pb, texts
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden" / "sentence"
NAMES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
DIMS = {"every_pooling": 144, "many_modules": 16, "old_flags": 20}
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: GOLDEN / name for name in NAMES}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def expected(name):
    return json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))


def assert_close(found, wanted):
    wanted = np.array(wanted)
    errors = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert errors.max() <= TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_are_those_of_sentence_transformers(client, name):
    case = expected(name)[0]
    assert_close(client.pooled(name, texts(*case["texts"])), case["embeddings"])
    assert np.ptp(case["embeddings"], axis=0).max() > 0.01, "texts that give the same embedding show nothing"


@pytest.mark.parametrize("name", NAMES)
def test_an_embedding_has_the_same_bits_in_every_batch(client, name):
    inputs = expected(name)[0]["texts"]
    together = client.pooled(name, texts(*inputs))
    for i, one in enumerate(inputs):
        assert client.pooled(name, texts(one)).tobytes() == together[i].tobytes()


def test_a_chat_template_that_is_left_out_is_warned_of(start_server, tmp_path):
    plain = settings.ROOT / "tests" / "golden" / "encoder" / "tiny_qwen3"
    shutil.copytree(plain, tmp_path / "model")
    (tmp_path / "model" / "chat_template.jinja").write_text("{{ messages }}")
    server = start_server({"plain": plain, "templated": tmp_path / "model"}).wait_ready()
    warnings = [line for line in server.log().splitlines() if "texts go through no chat template" in line]
    assert len(warnings) == 1 and "model 'templated'" in warnings[0]


def test_models_say_their_poolings_and_dimensions(client):
    models = client.models()
    assert {name: models[name].embedding_dims for name in DIMS} == DIMS
    assert list(models["old_flags"].poolings) == [pb.POOLING_CLS, pb.POOLING_MEAN]
    assert models["old_flags"].pooling == pb.POOLING_UNSPECIFIED
    assert models["many_modules"].pooling == pb.POOLING_MEAN
    assert models["many_modules"].normalize and not models["old_flags"].normalize


def test_dims_and_normalize_come_behind_the_modules(client):
    inputs = texts("the cat sat", "another mat")
    whole = client.pooled("old_flags", inputs)
    assert (client.pooled("old_flags", inputs, dims=7) == whole[:, :7]).all()
    unit = client.pooled("old_flags", inputs, dims=7, normalize=True)
    assert np.allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    assert np.allclose(unit, whole[:, :7] / np.linalg.norm(whole[:, :7], axis=1, keepdims=True), atol=1e-6)
    code, details = client.error(attendant.request("old_flags", inputs, pooled=pb.PooledOutput(dims=21)))
    assert (code.name, "has 20 dimensions" in details) == ("INVALID_ARGUMENT", True), details


def test_a_request_chooses_a_pooling_that_fits_the_modules(client):
    inputs = texts("the cat sat")
    every = client.pooled("every_pooling", inputs, normalize=False).reshape(6, -1)
    for row, pooling in enumerate(["CLS", "MAX", "MEAN", "MEAN_SQRT_LEN", "WEIGHTED_MEAN", "LAST"]):
        one = client.pooled("every_pooling", inputs, normalize=False, pooling=pb.Pooling.Value(f"POOLING_{pooling}"))
        assert np.allclose(one[0], every[row], atol=1e-6), pooling
    code, details = client.error(attendant.request("old_flags", inputs, pooled=pb.PooledOutput(pooling=pb.POOLING_CLS)))
    assert (code.name, "24 values" in details and "48" in details) == ("INVALID_ARGUMENT", True), details


def test_hidden_states_come_beside_the_embedding(client):
    message = attendant.request("every_pooling", texts("the cat sat"), last_hidden_state=True,
                                pooled=pb.PooledOutput(normalize=False))
    answer = client.encode(message)
    states, pooled = array(answer.last_hidden_state), array(answer.pooled).reshape(6, -1)
    weights = np.arange(1, len(states) + 1)[:, None]
    wanted = [states[0], states.max(0), states.mean(0), states.sum(0) / np.sqrt(len(states)),
              (weights * states).sum(0) / weights.sum(), states[-1]]
    assert np.allclose(pooled, wanted, atol=1e-5)


def test_kserve_has_the_dimensions_of_the_embedding(server, client):
    with triton.InferenceServerClient(server.grpc) as kserve:
        assert kserve.get_model_metadata("old_flags").outputs[0].shape == [-1, 20]
        assert kserve.get_model_metadata("old_flags.encoder").outputs[0].shape == [-1, -1, 24]
        text = triton.InferInput("text", [2, 1], "BYTES")
        text.set_data_from_numpy(np.array([["the cat sat"], ["another mat"]], dtype=object))
        found = kserve.infer("old_flags", [text]).as_numpy("sentence_embedding")
    assert (found == client.pooled("old_flags", texts("the cat sat", "another mat"))).all()


def test_the_command_shows_embeddings_and_poolings(server):
    def run(*arguments):
        return subprocess.run([settings.bin_dir() / "attendant", *arguments, "--server", server.grpc], check=True,
                              capture_output=True, text=True).stdout
    models = {model["name"]: model for model in json.loads(run("models", "--json"))["models"]}
    assert (models["old_flags"]["pooling"], models["old_flags"]["embedding_dims"]) == ("cls+mean", 20)
    line = json.loads(run("embed", "--json", "--model", "every_pooling", "--pooling", "weighted_mean", "the cat sat"))
    assert len(line["embedding"]) == 24


PROMPTS = [(name, case["prompt_name"]) for name in ("prompts", "prompt_left_out") for case in expected(name)]


def embed_with(client, name, inputs, prompt):
    message = attendant.request(name, texts(*inputs), pooled=pb.PooledOutput())
    if prompt is not None:
        message.prompt_name = prompt
    return array(client.encode(message).pooled)


@pytest.mark.parametrize("name, prompt", PROMPTS)
def test_prompts_are_those_of_sentence_transformers(client, name, prompt):
    case = next(case for case in expected(name) if case["prompt_name"] == prompt)
    found = embed_with(client, name, case["texts"], prompt)
    assert_close(found, case["embeddings"])
    for i, one in enumerate(case["texts"]):
        assert embed_with(client, name, [one], prompt).tobytes() == found[i].tobytes()


def test_models_say_their_prompts(client):
    info = client.models()["prompts"]
    assert (list(info.prompt_names), info.default_prompt_name) == (["document", "long", "query"], "query")
    assert list(client.models()["old_flags"].prompt_names) == ["document", "query"]  # both empty, as saved


def test_prompts_that_do_not_fit_are_refused(client):
    def details(model, sequence, prompt):
        message = attendant.request(model, [sequence], pooled=pb.PooledOutput())
        message.prompt_name = prompt
        code, text = client.error(message)
        assert code.name == "INVALID_ARGUMENT"
        return text
    text, pair = texts("the cat")[0], pb.Sequence(pair=pb.TextPair(first="a", second="b"))
    assert "'x', the model has the prompts 'document', 'long', 'query'" in details("prompts", text, "x")
    assert "'x', the model has the prompts 'document', 'query'" in details("old_flags", text, "x")
    assert "no single text" in details("prompts", attendant.ids([2, 3]), "query")
    assert "no single text" in details("prompts", pair, "query")


def test_ids_take_no_prompt_beside_the_default_one(client):
    plain = embed_with(client, "prompts", ["the cat"], "")
    message = attendant.request("prompts", texts("the cat"), token_ids=True, pooled=pb.PooledOutput())
    message.prompt_name = ""
    found = client.encode(message).sequences[0].token_ids
    assert (client.pooled("prompts", [attendant.ids(found)]) == plain).all()


def test_prompts_over_http_and_from_the_command(server, client):
    def post(path, body):
        return server.post_json(path, body, "prompts")

    query, none = (embed_with(client, "prompts", ["the cat sat"], prompt)[0] for prompt in ("query", ""))
    default = np.array(post("/embed", {"inputs": "the cat sat"})[0])
    assert np.abs(default - query).max() < 1e-6 < np.abs(query - none).max()
    found = np.array(post("/embed", {"inputs": "the cat sat", "prompt_name": "document"})[0])
    assert np.abs(found - none).max() < 1e-6
    tokens = post("/tokenize", {"inputs": "the cat sat", "prompt_name": "query"})[0]
    assert len(tokens) > len(post("/tokenize", {"inputs": "the cat sat", "prompt_name": "document"})[0])
    for input_type, wanted in (("search_query", query), ("search_document", none), ("clustering", query)):
        body = {"model": "prompts", "texts": ["the cat sat"], "input_type": input_type}
        found = np.array(post("/v2/embed", body)["embeddings"]["float"][0])
        assert np.abs(found - wanted).max() < 1e-6, input_type
    for input_type, wanted in (("query", query), ("passage", none), ("document", none), (None, query)):
        body = {"model": "prompts", "input": "the cat sat", "input_type": input_type}
        found = np.array(post("/v1/embeddings", body)["data"][0]["embedding"])
        assert np.abs(found - wanted).max() < 1e-6, input_type
    for flags, wanted in ((["--prompt_name=query"], query), (["--no-prompt"], none), ([], query)):
        out = subprocess.run([settings.bin_dir() / "attendant", "embed", "--json", "--model=prompts", *flags,
                              f"--server={server.grpc}", "the cat sat"], check=True, capture_output=True, text=True).stdout
        assert np.abs(np.array(json.loads(out)["embedding"]) - wanted).max() < 1e-6, flags
