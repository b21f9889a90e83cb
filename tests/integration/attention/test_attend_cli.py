# SPDX-License-Identifier: Apache-2.0
"""`attendant attend` as a user runs it: files in, files out, a table, a drawing, and clear refusals."""

import json
import subprocess

import numpy as np
import pytest

from harness import attention, golden, settings

OK, SERVER_ERROR, USAGE, NO_ANSWER = range(4)


@pytest.fixture
def attend(server, tmp_path):
    """attend(...) in a folder of its own; the finished process must have the exit code `code`."""
    def run(*arguments, code=OK):
        command = [settings.bin_dir() / "attendant", "attend", f"--server={server.grpc}", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False, cwd=tmp_path)
        assert done.returncode == code, f"{command}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return (done.stdout if code == OK else done.stderr).decode()
    return run


@pytest.fixture
def files(tmp_path):
    """query, key, value as .npy files, in formats that numpy writes."""
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((2, 3, n, 4)) for n in (5, 6, 6)]
    np.save(tmp_path / "q.npy", arrays[0].astype(np.float32))
    np.save(tmp_path / "k.npy", np.asfortranarray(arrays[1]))  # float64, columns first
    np.save(tmp_path / "v.npy", arrays[2].astype(">f4"))
    return arrays


QKV = ("--query=q.npy", "--key=k.npy", "--value=v.npy")


def test_files_in_and_out(attend, files, tmp_path):
    expected, weights = attention.attend(*files, masks=[attention.causal_mask(5, 6)])
    text = attend(*QKV, "--causal", "--output=out.npy", "--weights_output=w.npy")
    assert "[2, 3, 5, 4]" in text and "ms" in text
    assert np.abs(np.load(tmp_path / "out.npy") - expected).max() < 1e-5
    assert np.abs(np.load(tmp_path / "w.npy") - weights).max() < 1e-5
    attend(*QKV, "--causal", "--weights=averaged", "--output=out.safetensors")
    tensors = golden.read_safetensors(tmp_path / "out.safetensors")
    assert np.abs(tensors["output"] - expected).max() < 1e-5
    assert np.abs(tensors["weights"] - weights.mean(1)).max() < 1e-5


def test_a_safetensors_file_of_everything(attend, tmp_path, files):
    rows = [operand[:, 0].astype(np.float32) for operand in files]
    rng = np.random.default_rng(4)
    parameters = {name: rng.standard_normal(shape).astype(np.float32)
                  for name, shape in (("query_weight", (7, 4)), ("key_weight", (7, 4)), ("score_weight", (7,)))}
    folder = attention.write_module(tmp_path / "all", {}, dict(zip(("query", "key", "value"), rows), **parameters))
    attend("--kind=additive", f"--input={folder / 'model.safetensors'}", "--output=out.npy")
    hidden = (rows[0] @ parameters["query_weight"].T)[:, :, None] + (rows[1] @ parameters["key_weight"].T)[:, None]
    expected, _ = attention.attend(*rows, scores=np.tanh(hidden) @ parameters["score_weight"])
    assert np.abs(np.load(tmp_path / "out.npy") - expected).max() < 1e-5


def test_masks_and_ragged(attend, tmp_path, files):
    mask = np.random.default_rng(6).random((5, 6)) < 0.7
    np.save(tmp_path / "mask.npy", mask)
    answer = json.loads(attend(*QKV, "--mask=mask.npy", "--json"))
    values = np.array(answer["output"]["values"]).reshape(answer["output"]["shape"])
    assert np.abs(values - attention.attend(*files, masks=[mask])[0]).max() < 1e-5
    np.save(tmp_path / "rows.npy", np.ones((6, 4), np.float32))
    answer = json.loads(attend("--query=rows.npy", "--query_lengths=1,5", "--json"))
    assert np.allclose(answer["output"]["values"], 1)


def test_one_sequence_needs_no_lengths(attend, tmp_path, files):
    query, key, value = (operand[0, 0].astype(np.float32) for operand in files)
    for name, array in (("q", query), ("k", key), ("v", value)):
        np.save(tmp_path / f"{name}.npy", array)
    answer = json.loads(attend(*QKV, "--json"))
    assert answer["output"]["shape"] == [1, 5, 4]
    expected = attention.attend(query[None, None], key[None, None], value[None, None])[0]
    assert np.abs(np.array(answer["output"]["values"]).reshape(5, 4) - expected[0, 0]).max() < 1e-5
    attend("--query=q.npy", "--output=out.npy")
    assert np.load(tmp_path / "out.npy").shape == (1, 5, 4)
    assert "5 queries down, 6 keys across" in attend(*QKV, "--show_weights")


def test_draws_the_weights(attend, files):
    text = attend(*QKV, "--show_weights")
    assert "head 2: 5 queries down, 6 keys across" in text and "█" in text


def test_lists_the_kinds(attend):
    text = attend("--list")
    assert "luong_concat" in text and "O(n" in text
    kinds = {kind["name"] for kind in json.loads(attend("--list", "--json"))["kinds"]}
    assert {"scaled_dot_product", "flash", "linformer"} <= kinds


@pytest.mark.parametrize("arguments, code, message", [
    ((), USAGE, "there is no query"),
    (("--query=nothing.npy",), USAGE, "there is no file nothing.npy"),
    (("--query=text.npy",), USAGE, "not a usable .npy file"),
    (("--query=objects.npy",), USAGE, "dtype"),
    (("--query=q.npy", "--kind=unknown"), USAGE, "--kind cannot be 'unknown'"),
    (("--query=q.npy", "--key=short.npy"), SERVER_ERROR, "[3, 4]"),
    (("--query=q.npy", "--parameter=weight=q.npy"), SERVER_ERROR, "'weight' is no parameter"),
    (("--query=q.npy", "--query_lengths=1,x"), USAGE, "'x' is not a whole number"),
    (("--query=q.npy", "--model=nobody"), SERVER_ERROR, "nobody"),
])
def test_refusals(attend, files, tmp_path, arguments, code, message):
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "short.npy", np.ones((3, 4), np.float32))
    assert message in attend(*arguments, code=code)
