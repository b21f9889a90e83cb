# SPDX-License-Identifier: Apache-2.0
"""Embeddings as int8 and as packed bits, beside the numbers that they stand for."""

import json
import subprocess

import grpc
import numpy as np
import pytest

from harness import attendant, settings
from harness.attendant import array, pb, texts
from harness.server import serving

MODELS = {name: settings.ROOT / "tests" / "golden" / "sentence" / name for name in ("every_pooling", "old_flags")}
TEXTS = ["the cat sat on the mat", "another mat", ""]
PACKED = {pb.DTYPE_BINARY: "int8", pb.DTYPE_UBINARY: "uint8", pb.DTYPE_INT8: "int8"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), MODELS, "--dtype=f32") as running:
        yield running


def packed(client, name, dtype, inputs=TEXTS, **options):
    answer = client.encode(attendant.request(name, texts(*inputs), pooled=pb.PooledOutput(dtype=dtype, **options)))
    assert answer.pooled.dtype == dtype
    return np.frombuffer(answer.pooled.data, PACKED[dtype]).reshape(answer.pooled.shape), answer


@pytest.mark.parametrize("dims", [0, 11])
@pytest.mark.parametrize("name", MODELS)
def test_bits_are_the_signs(client, name, dims):
    wanted = np.packbits(client.pooled(name, texts(*TEXTS), dims=dims) > 0, axis=1)
    unsigned, answer = packed(client, name, pb.DTYPE_UBINARY, dims=dims)
    assert (unsigned == wanted).all() and not answer.HasField("pooled_scales")
    signed, _ = packed(client, name, pb.DTYPE_BINARY, dims=dims)
    assert (signed == (wanted.astype(int) - 128)).all()


@pytest.mark.parametrize("name", MODELS)
def test_int8_is_within_half_a_step(client, name):
    numbers = client.pooled(name, texts(*TEXTS))
    values, answer = packed(client, name, pb.DTYPE_INT8)
    scales = array(answer.pooled_scales)
    assert np.allclose(scales, np.abs(numbers).max(1) / 127)
    assert (np.abs(values * scales[:, None] - numbers) <= 0.501 * scales[:, None]).all()
    for i, one in enumerate(TEXTS):
        assert packed(client, name, pb.DTYPE_INT8, [one])[0].tobytes() == values[i].tobytes()


def test_the_embedding_has_a_format_of_its_own(client):
    outputs = pb.OutputSelection(dtype=pb.DTYPE_F16, last_hidden_state=True, pooled=pb.PooledOutput(dtype=pb.DTYPE_F32))
    message = attendant.request("old_flags", texts("the cat"))
    message.outputs.CopyFrom(outputs)
    answer = client.encode(message)
    assert (answer.last_hidden_state.dtype, answer.pooled.dtype) == (pb.DTYPE_F16, pb.DTYPE_F32)
    message.outputs.pooled.dtype = pb.DTYPE_UNSPECIFIED
    assert client.encode(message).pooled.dtype == pb.DTYPE_F16


@pytest.mark.parametrize("outputs, text", [
    (pb.OutputSelection(dtype=pb.DTYPE_INT8), "outputs.dtype cannot be INT8"),
    (pb.OutputSelection(pooled=pb.PooledOutput(dtype=pb.DTYPE_BOOL)), "outputs.pooled.dtype cannot be BOOL"),
    (pb.OutputSelection(pooled=pb.PooledOutput(dtype=77)), "outputs.pooled.dtype is 77"),
])
def test_formats_that_do_not_fit_are_refused(client, outputs, text):
    message = attendant.request("old_flags", texts("the cat"))
    message.outputs.CopyFrom(outputs)
    code, details = client.error(message)
    assert (code, text in details) == (grpc.StatusCode.INVALID_ARGUMENT, True), details


def test_cohere_and_the_command_have_the_same_values(server, client):
    int8 = packed(client, "old_flags", pb.DTYPE_INT8)[0].tolist()
    bits = packed(client, "old_flags", pb.DTYPE_UBINARY)[0].tolist()
    signed = packed(client, "old_flags", pb.DTYPE_BINARY)[0].tolist()
    body = {"model": "old_flags", "texts": TEXTS, "embedding_types": ["int8", "ubinary", "binary"]}
    answer = server.post_json("/v2/embed", body)
    assert answer["embeddings"] == {"int8": int8, "ubinary": bits, "binary": signed}

    def run(*arguments):
        return subprocess.run([settings.bin_dir() / "attendant", "embed", "--json", "--model=old_flags", *arguments,
                               f"--server={server.grpc}", TEXTS[0]], capture_output=True, text=True)
    line = json.loads(run("--embedding_format=int8").stdout)
    assert line["embedding"] == int8[0] and line["scale"] > 0
    assert json.loads(run("--embedding_format=binary").stdout)["embedding"] == signed[0]
    refused = run("--embedding_format=binary", "--similarity")
    assert (refused.returncode, "not bits" in refused.stderr) == (2, True)
