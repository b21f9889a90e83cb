# SPDX-License-Identifier: Apache-2.0
"""Outputs of heads on tokens, from text to answer: SPLADE, fill-mask, named entities, BGE-M3. Against transformers."""

import json
import shutil
import subprocess

import grpc
import numpy as np
import pytest
import tokenizers

from harness import attendant, settings
from harness.attendant import DEADLINE, array, ids, pb, texts
from harness.golden import read_safetensors
from harness.server import Server, serving

GOLDEN = settings.ROOT / "tests" / "golden" / "tokens"
NAMES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
MASKED_LMS = [name for name in NAMES if name.endswith(("_masked_lm", "_splade", "_splade_sum"))]
TOKEN_MODELS = [name for name in NAMES if name.endswith("_tokens")]
LABELS = ["O", "B-PER", "I-PER", "B-LOC"]
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    pickled = tmp_path_factory.mktemp("models") / "pickled"
    shutil.copytree(GOLDEN / "bge_m3", pickled)
    (pickled / "sparse_linear.safetensors").rename(pickled / "sparse_linear.pt")
    no_mask = tmp_path_factory.mktemp("models") / "no_mask"
    shutil.copytree(GOLDEN / "bert_splade", no_mask)
    (no_mask / "tokenizer.json").unlink()
    capped = tmp_path_factory.mktemp("models") / "capped"
    shutil.copytree(GOLDEN / "bert_splade", capped)
    (capped / "config_sentence_transformers.json").write_text('{"max_active_dims": 5}', encoding="utf-8")
    models = {name: GOLDEN / name for name in NAMES}
    models |= {"tiny": settings.TINY_MODEL, "pickled": pickled, "no_mask": no_mask, "capped": capped}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def golden(name):
    return json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))


def golden_texts(name):
    return texts(*(case["text"] for case in golden(name)))


def assert_close(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCE * np.linalg.norm(expected)


def sparse_vectors(answer):
    """{id: weight} of each sequence."""
    weights, vectors, start = array(answer.sparse.weights), [], 0
    for info in answer.sequences:
        end = start + info.sparse_weights
        vectors.append(dict(zip(answer.sparse.ids[start:end], weights[start:end].tolist())))
        start = end
    assert start == len(weights) == len(answer.sparse.ids)
    return vectors


def multi_vectors(answer):
    splits = np.cumsum([len(info.vector_tokens) for info in answer.sequences])
    return np.split(array(answer.multi_vectors), splits)[:-1]


@pytest.mark.parametrize("name", MASKED_LMS)
def test_sparse_vectors_are_those_of_sentence_transformers(client, name):
    cases = golden(name)
    answer = client.encode(attendant.request(name, golden_texts(name), sparse=pb.SparseOutput()))
    for case, found in zip(cases, sparse_vectors(answer)):
        dense = np.zeros(len(case["sparse"]))
        dense[list(found)] = list(found.values())
        assert_close(dense, case["sparse"])
    assert not answer.HasField("pooled")


@pytest.mark.parametrize("name", MASKED_LMS)
def test_predictions_at_masks_are_those_of_transformers(client, name):
    cases = golden(name)
    message = attendant.request(name, golden_texts(name), fill_mask=pb.FillMaskOutput(top_k=3), token_strings=True)
    answer = client.encode(message)
    scores = array(answer.fill_mask.scores)
    rows = [np.array(row) for case in cases for row in case["logits"]]
    assert scores.shape == (len(rows), 3)
    assert [list(info.mask_tokens) for info in answer.sequences] == [case["masks"] for case in cases]
    found_ids = np.array(answer.fill_mask.token_ids).reshape(scores.shape)
    for row, found, at in zip(rows, scores, found_ids):
        probabilities = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        assert_close(found, probabilities[at])
        assert_close(np.sort(probabilities)[::-1][:3], found)
    file = GOLDEN / name / "tokenizer.json"
    if file.exists():
        tokens = json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]
    else:  # ESM's
        lines = file.with_name("vocab.txt").read_text(encoding="utf-8").split()
        tokens = {token: line for line, token in enumerate(lines)}
    if isinstance(tokens, dict):
        assert all(tokens[string] == token for string, token in
                   zip(answer.fill_mask.token_strings, answer.fill_mask.token_ids) if string in tokens)
    assert len(answer.fill_mask.token_strings) == scores.size


@pytest.mark.parametrize("name", TOKEN_MODELS)
def test_token_scores_are_those_of_transformers(client, name):
    cases = golden(name)
    logits = np.concatenate([case["logits"] for case in cases])
    raw = client.encode(attendant.request(name, golden_texts(name), token_scores=pb.TokenScoreOutput(raw=True)))
    assert_close(array(raw.token_scores), logits)
    scores = client.encode(attendant.request(name, golden_texts(name), token_scores=pb.TokenScoreOutput()))
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    assert_close(array(scores.token_scores), exp / exp.sum(-1, keepdims=True))


def test_bge_m3_makes_its_three_outputs_in_one_pass(client):
    cases = golden("bge_m3")
    message = attendant.request("bge_m3", golden_texts("bge_m3"), pooled=pb.PooledOutput(), sparse=pb.SparseOutput(),
                                multi_vector=pb.MultiVectorOutput())
    answer = client.encode(message)
    assert_close(array(answer.pooled), [case["dense"] for case in cases])
    for case, weights, vectors, info in zip(cases, sparse_vectors(answer), multi_vectors(answer), answer.sequences):
        assert list(weights) == [token for token, _ in case["weights"]]
        if weights:
            assert_close(np.array(list(weights.values())), [weight for _, weight in case["weights"]])
        assert_close(vectors, np.array(case["vectors"]))
        assert list(info.vector_tokens) == list(range(1, info.tokens))
    alone = client.encode(attendant.request("bge_m3", golden_texts("bge_m3"), sparse=pb.SparseOutput()))
    assert alone.sparse == answer.sparse


ALL_TASKS = {"sparse": pb.SparseOutput(top_k=20), "fill_mask": pb.FillMaskOutput()}


@pytest.mark.parametrize("name, outputs", [
    ("bert_splade", ALL_TASKS), ("bert_splade_sum", ALL_TASKS), ("modernbert_masked_lm", ALL_TASKS),
    ("bert_tokens", {"token_scores": pb.TokenScoreOutput()}),
    ("bge_m3", {"sparse": pb.SparseOutput(), "multi_vector": pb.MultiVectorOutput()})])
def test_results_have_the_same_bits_in_every_batch(client, name, outputs):
    sequences = golden_texts(name)
    together = client.encode(attendant.request(name, sequences, **outputs))
    parts = {"sparse_weights": b"", "fill_mask": b"", "token_scores": b"", "multi_vectors": b""}
    for sequence in sequences:
        alone = client.encode(attendant.request(name, [sequence], **outputs))
        parts["sparse_weights"] += alone.sparse.weights.data
        parts["fill_mask"] += alone.fill_mask.scores.data
        parts["token_scores"] += alone.token_scores.data
        parts["multi_vectors"] += alone.multi_vectors.data
    assert parts == {"sparse_weights": together.sparse.weights.data, "fill_mask": together.fill_mask.scores.data,
                     "token_scores": together.token_scores.data, "multi_vectors": together.multi_vectors.data}


HOLES = [ids([2, 7, 9, 4, 30, 3], [1, 0, 1, 1, 0, 1]), ids([2, 3]), ids([2, 4, 3], [0, 0, 0])]


def test_masked_tokens_have_no_part(client):
    tensors = read_safetensors(GOLDEN / "bert_tokens" / "model.safetensors")
    message = attendant.request("bert_tokens", HOLES, token_scores=pb.TokenScoreOutput(raw=True), last_hidden_state=True)
    answer = client.encode(message)
    expected = array(answer.last_hidden_state) @ tensors["classifier.weight"].T + tensors["classifier.bias"]
    expected[[1, 4, 8, 9, 10]] = 0
    assert_close(array(answer.token_scores), expected)


def test_masked_mask_tokens_and_empty_sequences(client):
    answer = client.encode(attendant.request("bert_splade", HOLES + [ids([2, 4, 3], [1, 0, 1])],
                                             sparse=pb.SparseOutput(), fill_mask=pb.FillMaskOutput(top_k=2)))
    assert [list(info.mask_tokens) for info in answer.sequences] == [[3], [], [], []]
    assert array(answer.fill_mask.scores).shape == (1, 2)
    counts = [info.sparse_weights for info in answer.sequences]
    assert counts[0] > 0 and counts[1] > 0 and counts[2] == 0
    vectors = client.encode(attendant.request("bge_m3", HOLES, multi_vector=pb.MultiVectorOutput()))
    assert [list(info.vector_tokens) for info in vectors.sequences] == [[2, 3, 5], [1], []]


def test_a_masked_mask_token_does_not_scale_the_others(client):
    """ESM scales a text's embeddings up by its share of mask tokens, 32. A masked one is not in the text."""
    def states(token, mask):
        message = attendant.request("esm_masked_lm", [ids([0, 5, token, 9, 2], mask)], last_hidden_state=True)
        return array(client.encode(message).last_hidden_state)

    assert (states(32, [1, 1, 0, 1, 1]) == states(7, [1, 1, 0, 1, 1])).all()
    assert np.abs(states(32, [1, 1, 1, 1, 1]) - states(32, [1, 1, 0, 1, 1]))[[0, 1, 3, 4]].max() > 1e-3


def test_padded_input_has_padded_token_scores(client):
    padded = pb.PaddedBatch(batch=2, seq=3, token_ids=[2, 7, 3, 2, 3, 0], attention_mask=[1, 1, 1, 1, 1, 0])
    message = pb.EncodeRequest(model="bert_tokens", padded=padded,
                               outputs=pb.OutputSelection(token_scores=pb.TokenScoreOutput()))
    scores = array(client.encode(message).token_scores)
    assert scores.shape == (2, 3, 4)
    assert (scores[1, 2] == 0).all() and np.allclose(scores.sum(-1)[[0, 0, 0, 1, 1], [0, 1, 2, 0, 1]], 1)


def test_top_k_keeps_the_largest(client):
    sequences = golden_texts("bert_splade")
    full = sparse_vectors(client.encode(attendant.request("bert_splade", sequences, sparse=pb.SparseOutput())))
    some = sparse_vectors(client.encode(attendant.request("bert_splade", sequences, sparse=pb.SparseOutput(top_k=5))))
    for everything, largest in zip(full, some):
        order = sorted(everything, key=lambda token: (-everything[token], token))[:5]
        assert largest == {token: everything[token] for token in sorted(order)}


def test_max_active_dims_is_the_top_k_of_a_request_without_one(client):
    sequences = golden_texts("bert_splade")
    for asked, meant in ((0, 5), (3, 3), (7, 7)):
        capped = client.encode(attendant.request("capped", sequences, sparse=pb.SparseOutput(top_k=asked)))
        plain = client.encode(attendant.request("bert_splade", sequences, sparse=pb.SparseOutput(top_k=meant)))
        assert capped.sparse == plain.sparse


def test_a_stream_answers_too(client):
    requests = [attendant.request("bert_splade", [sequence], sparse=pb.SparseOutput(), token_strings=True)
                for sequence in golden_texts("bert_splade")]
    for i, message in enumerate(requests):
        message.id = str(i)
    answers = {answer.id: answer.response for answer in client.stub.EncodeStream(iter(requests), timeout=DEADLINE)}
    for message in requests:
        assert answers[message.id].sparse == client.encode(message).sparse
        assert len(answers[message.id].sparse.token_strings) == len(answers[message.id].sparse.ids)


def test_models_tell_their_tasks(client):
    models = client.models()
    assert list(models["bert_splade"].tasks) == ["sparse", "fill_mask"]
    assert list(models["bert_tokens"].tasks) == ["token_scores"] and list(models["bert_tokens"].token_labels) == LABELS
    assert list(models["bge_m3"].tasks) == ["scores", "sparse", "multi_vector"]
    assert list(models["pickled"].tasks) == ["scores", "multi_vector"] and not models["tiny"].tasks


@pytest.mark.parametrize("model, outputs, details", [
    ("tiny", {"sparse": pb.SparseOutput()}, "sparse: model 'tiny' has no head"),
    ("bert_tokens", {"fill_mask": pb.FillMaskOutput()}, "fill_mask: model 'bert_tokens' has no head"),
    ("bert_splade", {"token_scores": pb.TokenScoreOutput()}, "token_scores"),
    ("bert_splade", {"multi_vector": pb.MultiVectorOutput()}, "multi_vector"),
    ("bert_splade", {"sparse": pb.SparseOutput(top_k=-1)}, "sparse.top_k is -1"),
    ("pickled", {"sparse": pb.SparseOutput()}, "s.save_file(torch.load("),
])
def test_what_a_model_does_not_make_is_refused(client, model, outputs, details):
    with pytest.raises(grpc.RpcError) as caught:
        client.encode(attendant.request(model, [ids([2, 3])], **outputs))
    assert caught.value.code().name == "INVALID_ARGUMENT" and details in caught.value.details()


def test_answers_are_counted_before_they_are_made(tmp_path):
    running = Server(tmp_path, {"model": GOLDEN / "bert_splade"}, "--max_response_bytes=2000")
    try:
        with attendant.Client(running.wait_ready().grpc) as client:
            three = texts("a", "b", "c")
            with pytest.raises(grpc.RpcError) as caught:
                client.encode(attendant.request("model", three, sparse=pb.SparseOutput()))
            assert "the outputs asked for take" in caught.value.details()
            client.encode(attendant.request("model", three, sparse=pb.SparseOutput(top_k=20)))
            with pytest.raises(grpc.RpcError):
                client.encode(attendant.request("model", texts("[MASK] " * 30), fill_mask=pb.FillMaskOutput(top_k=30)))
    finally:
        running.stop()


def test_embed_sparse_over_http(server, client):
    strings = [case["text"] for case in golden("bert_splade")[:3]]
    wanted = sparse_vectors(client.encode(attendant.request("bert_splade", texts(*strings), sparse=pb.SparseOutput())))
    found = server.post_json("/embed_sparse", {"inputs": strings}, "bert_splade")
    assert [{entry["index"]: np.float32(entry["value"]) for entry in vector} for vector in found] == wanted
    found = server.post_json("/embed_sparse", {"inputs": strings[0], "top_k": 3}, "bert_splade")
    assert len(found) == 1 and len(found[0]) == 3
    refused = server.post_json("/embed_sparse", {"inputs": "a"}, "bert_tokens", code=400)
    assert "has no head" in refused["error"]
    refused = server.post_json("/embed_sparse", {"inputs": "a", "top_k": -1}, "bert_splade", code=400)
    assert "top_k" in refused["error"]


@pytest.mark.parametrize("model, path",
                         [("bert_splade", "/embed_sparse"), ("no_mask", "/embed_sparse"), ("bge_m3", "/embed")])
def test_the_root_over_http(server, model, path):
    body = {"inputs": [case["ids"] for case in golden("bert_splade")[:2]]}
    assert server.post_json("/", body, model) == server.post_json(path, body, model)


def command(server, *arguments, code=0):
    done = subprocess.run([settings.bin_dir() / "attendant", arguments[0], f"--server={server.grpc}", *arguments[1:]],
                          capture_output=True, timeout=DEADLINE, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode() if code == 0 else done.stderr.decode()


def test_the_command_shows_sparse_vectors(server, client):
    text = "the quick brown fox"
    wanted = sparse_vectors(client.encode(attendant.request("bert_splade", texts(text), sparse=pb.SparseOutput())))[0]
    found = json.loads(command(server, "sparse", "--model=bert_splade", "--json", text))
    assert found["ids"] == list(wanted) and np.array_equal(np.float32(found["weights"]), list(wanted.values()))
    vocabulary = tokenizers.Tokenizer.from_file(str(GOLDEN / "bert_splade" / "tokenizer.json"))
    assert found["tokens"] == [vocabulary.id_to_token(token) for token in wanted]
    shown = command(server, "sparse", "--model=bert_splade", "--top=4", text).splitlines()
    assert shown[0] == f"4 weights  {text}" and len(shown) == 5


def test_the_command_labels_tokens_and_fills_masks(server):
    found = json.loads(command(server, "tokens", "--model=bert_tokens", "--json", "--top=2", "the quick brown fox"))
    logits = np.array(golden("bert_tokens")[0]["logits"])
    assert [token["labels"][0]["label"] for token in found["tokens"]] == [LABELS[i] for i in logits.argmax(-1)]
    assert found["tokens"][0]["string"] == "[CLS]" and len(found["tokens"][0]["labels"]) == 2
    filled = json.loads(command(server, "tokens", "--model=bert_splade", "--fill_mask", "--json", "--top=2",
                                "never [MASK] again"))
    assert [token["token"] for token in filled["tokens"]] == golden("bert_splade")[1]["masks"]
    assert len(filled["tokens"][0]["predictions"]) == 2
    assert "[CLS]" in command(server, "tokens", "--model=bert_tokens", "the lazy dog")
    text = "the lazy dog"
    tokens = json.loads(command(server, "tokens", "--model=bert_tokens", "--offsets", "--json", text))["tokens"]
    encoding = tokenizers.Tokenizer.from_file(str(GOLDEN / "bert_tokens" / "tokenizer.json")).encode(text)
    assert [(token["begin"], token["end"]) for token in tokens] == encoding.offsets
    assert "begin" not in json.loads(command(server, "tokens", "--model=bert_tokens", "--json", text))["tokens"][0]
