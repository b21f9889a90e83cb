# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that lies or is incomplete fails to load with a clear reason, and harms nothing else."""

import json
import shutil
import struct

import grpc
import pytest

from harness import attendant, settings
from harness.attendant import ids, pb, request
from harness.server import START_SECONDS, wait_until


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def cut_inside_header(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:20])


def lie_about_header_length(folder):
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**63) + path.read_bytes()[8:])


def edit_header(folder, edit):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    edit(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])


def first_tensor(header):
    return header[next(name for name in sorted(header) if name != "__metadata__")]


def lie_about_offsets(folder):
    edit_header(folder, lambda header: first_tensor(header).update(data_offsets=[0, 2**62]))


def lie_about_shape(folder):
    edit_header(folder, lambda header: first_tensor(header).update(shape=[2**40, 2**40]))


def leave_a_gap(folder):
    edit_header(folder, lambda header: header.pop("encoder.layer.0.attention.self.query.weight"))


def lose_a_tensor(folder):
    def rename(header):
        header["unknown"] = header.pop("encoder.layer.0.attention.self.query.weight")
    edit_header(folder, rename)


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


FAULTS = {
    "truncated weights": (truncate, "model.safetensors"),
    "weights end inside the header": (cut_inside_header, "model.safetensors"),
    "lying header length": (lie_about_header_length, "model.safetensors"),
    "lying offsets": (lie_about_offsets, ""),
    "lying shape": (lie_about_shape, ""),
    "gap between tensors": (leave_a_gap, "ends at"),
    "missing tensor": (lose_a_tensor, "query"),
    "missing weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
    "missing config": (lambda folder: (folder / "config.json").unlink(), "config.json"),
    "config is no JSON": (lambda folder: (folder / "config.json").write_text("{"), "config.json"),
    "heads do not divide hidden": (lambda folder: edit_config(folder, num_attention_heads=5), "5"),
    "config contradicts the weights": (lambda folder: edit_config(folder, intermediate_size=113), "113"),
    "negative layers": (lambda folder: edit_config(folder, num_hidden_layers=-1), "-1"),
    "huge hidden size": (lambda folder: edit_config(folder, hidden_size=2**40), str(2**40)),
    "unknown activation": (lambda folder: edit_config(folder, hidden_act="nothing"), "nothing"),
    "unknown architecture": (lambda folder: edit_config(folder, model_type="nothing"), "nothing"),
    "empty folder": (lambda folder: [path.unlink() for path in folder.iterdir()], "config.json"),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """{fault: folder}"""
    folders = {}
    for index, (fault, (damage, _)) in enumerate(FAULTS.items()):
        folders[fault] = tmp_path_factory.mktemp("broken") / f"bad{index}"
        shutil.copytree(settings.TINY_MODEL, folders[fault])
        damage(folders[fault])
    return folders


def test_each_fails_alone_and_says_why(start_server, broken, tmp_path):
    models = {folder.name: folder for folder in broken.values()}
    models |= {"missing": tmp_path / "missing", "good": settings.TINY_MODEL}
    server = start_server(models, "--strict_readiness=on")
    with attendant.Client(server.grpc) as client:
        wait_until("the last model", START_SECONDS, lambda: client.models()["good"].state == pb.MODEL_STATE_READY)
        infos = client.models()
        for fault, folder in broken.items():
            info = infos[folder.name]
            assert info.state == pb.MODEL_STATE_FAILED, fault
            assert info.error and FAULTS[fault][1] in info.error, f"{fault}: {info.error}"
            code, details = client.error(request(folder.name, [ids([5])]))
            assert code == grpc.StatusCode.UNAVAILABLE and details, fault
        assert infos["missing"].state == pb.MODEL_STATE_FAILED
        assert client.pooled("good", [ids([5])]).shape == (1, 48)
    code, reason = server.get("/readyz")
    assert code == 503 and "bad0" in reason
