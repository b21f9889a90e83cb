# SPDX-License-Identifier: Apache-2.0
"""`attendant models` loads and unloads the models of a running server."""

import json
import subprocess

import pytest

from harness import settings
from harness.model_folder import write_model
from harness.server import Server, serving

SERVER_ERROR = 1
READ_KEY = "read-key-0123456789"
ADMIN_KEY = "admin-key-0123456789"


def change(server, *flags):
    """The exit code, the state of each model by name, and what was said about errors."""
    command = [settings.bin_dir() / "attendant", "models", f"--server={server.grpc}", "--json", *flags]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, text=True)
    models = json.loads(done.stdout)["models"] if done.returncode == 0 else []
    return done.returncode, {model["name"]: model["state"] for model in models}, done.stderr


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    write_model(root / "one", False)
    write_model(root / "two", False)
    write_model(root / "broken", False)
    (root / "broken" / "model.safetensors").write_bytes(b"no weights")
    return root


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, repository):
    folder = tmp_path_factory.mktemp("server")
    (folder / "keys").write_text(f"{READ_KEY} viewer read\n{ADMIN_KEY} operator read,admin\n")
    (folder / "read").write_text(READ_KEY)
    (folder / "admin").write_text(ADMIN_KEY)
    running = Server(folder, {}, "--dtype=f32", f"--model_repository={repository}", "--model_control=explicit",
                     f"--api_keys={folder / 'keys'}")
    try:
        yield running, f"--api_key_file={folder / 'admin'}", f"--api_key_file={folder / 'read'}"
    finally:
        running.stop()


def test_loads_and_unloads(guarded):
    server, admin, _ = guarded
    assert change(server, admin, "--load=one") == (0, {"one": "ready", "two": "unloaded", "broken": "unloaded"}, "")
    code, states, _ = change(server, admin, "--load=two", "--unload=one")
    assert (code, states["one"], states["two"]) == (0, "unloaded", "ready")


def test_says_why_not(guarded):
    server, admin, read = guarded
    for flags, words in (
            ((admin, "--load=nobody"), "NOT_FOUND: cannot load 'nobody': "),
            ((admin, "--unload=nobody"), "NOT_FOUND: cannot unload 'nobody': there is no model"),
            ((admin, "--load=../one"), "INVALID_ARGUMENT: cannot load '../one': "),
            ((admin, "--load=broken"), "model.safetensors"),
            ((read, "--load=one"), "PERMISSION_DENIED: cannot load 'one': "),
            (("--unload=one",), "UNAUTHENTICATED: cannot unload 'one': ")):
        code, _, said = change(server, *flags)
        assert code == SERVER_ERROR and words in said, f"{flags}: {code} {said}"
    assert change(server, admin)[1]["broken"] == "failed"


def test_a_server_without_control_says_so(tmp_path):
    with serving(tmp_path, {"tiny": settings.TINY_MODEL}, "--dtype=f32") as server:
        code, _, said = change(server, "--load=tiny")
        assert code == SERVER_ERROR and "PERMISSION_DENIED" in said and "--model_control=none" in said, said
