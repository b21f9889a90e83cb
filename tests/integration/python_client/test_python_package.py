# SPDX-License-Identifier: Apache-2.0
"""The package as people get it: pip, the code of the pages, the examples, the types, keys and encryption."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import attendant
from harness import client_package, settings

PAGE = client_package.SOURCE / "README.md"
EXAMPLES = sorted((client_package.SOURCE / "examples").glob("*.py"))


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_code_of_the_page(server):
    names = {}
    blocks = python_blocks(PAGE)
    for block in blocks:
        exec(block.replace("127.0.0.1:8001", server.grpc), names)  # pylint: disable=exec-used
    names["client"].close()
    assert len(blocks) == 5 and names["result"].weights.shape == (1, 16, 16)


def test_code_of_the_front_page(server):
    block, = [block for block in python_blocks(settings.ROOT / "README.md") if "attendant" in block]
    environment = {**os.environ, "PYTHONPATH": client_package.FOLDER}
    code = block.replace("127.0.0.1:8001", server.grpc).replace("Client(", "Client(model='minilm', target=")
    assert run(sys.executable, "-c", code, env=environment) == "(1, 384)\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples(server, example):
    environment = {**os.environ, "PYTHONPATH": client_package.FOLDER}
    printed = run(sys.executable, example, server.grpc, "minilm", env=environment,
                  input="A line.\n" + "word " * 1000 + "\nAnother.\n").splitlines()
    if example.stem == "semantic_search":
        assert "Eiffel" in printed[0] and len(printed) == 4
    elif example.stem == "stream_embeddings":
        lines = {line.pop("line"): line for line in map(json.loads, printed)}
        assert [list(lines[i]) for i in range(3)] == [["embedding"], ["error"], ["embedding"]]
    else:
        assert printed[0] == "embeddings of [384, 384, 384] values" and printed[1].startswith("NOT_FOUND: ")


STREAM = """
from attendant import AsyncClient, operations
async def first(client: AsyncClient) -> float:
    rows = client.stream([operations.embed("a")])
    async for row in rows:
        await rows.aclose()
        return float(row[0])
    return 0.0
"""


def test_types():
    package = pathlib.Path(client_package.FOLDER) / "attendant"
    assert (package / "py.typed").exists() and (package / "v1" / "encoder_pb2.pyi").exists()
    run(sys.executable, "-m", "mypy", "--config-file", client_package.SOURCE / "pyproject.toml", "--cache-dir", os.devnull,
        package)
    run(sys.executable, "-m", "mypy", "--config-file", client_package.SOURCE / "pyproject.toml", "--cache-dir", os.devnull,
        "-c", STREAM, env={**os.environ, "MYPYPATH": client_package.FOLDER})


def test_pip_install_from_a_clean_clone(tmp_path):
    """With build isolation: pip fetches what the build needs."""
    clone = tmp_path / "clone"
    shutil.copytree(settings.ROOT / "proto", clone / "proto")
    shutil.copytree(client_package.SOURCE, clone / "client" / "python",
                    ignore=shutil.ignore_patterns("__pycache__", "*.pyi", "*.binpb"))
    before = sorted(clone.rglob("*"))
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "installed",
        "./client/python", cwd=clone)
    assert sorted(clone.rglob("*")) == before, "the build leaves files in the tree"
    version = run(sys.executable, "-c", "import attendant, attendant.v1.encoder_pb2 as pb; print(pb.EncodeRequest(id='x').id"
                  ", attendant.__file__)", env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")}, cwd=tmp_path)
    assert version == f"x {tmp_path / 'installed' / 'attendant' / '__init__.py'}\n"
    license_file, = (tmp_path / "installed").glob("attendant_client-*.dist-info/licenses/LICENSE")
    assert license_file.read_bytes() == (settings.ROOT / "LICENSE").read_bytes()


KEYS = {"search": "infer-key-0123456789", "viewer": "read-key-0123456789"}


def test_keys_and_tls(start_server, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                    tmp_path / "key.pem", "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    (tmp_path / "keys").write_text(f"{KEYS['search']} search infer\n{KEYS['viewer']} viewer read\n")
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={tmp_path / 'cert.pem'}",
                          f"--tls_key={tmp_path / 'key.pem'}", f"--api_keys={tmp_path / 'keys'}",
                          f"--access_log={tmp_path / 'access.log'}").wait_ready()
    tls = attendant.Tls(ca_file=tmp_path / "cert.pem")
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with attendant.Client(server.grpc, tls=tls, model="tiny", traceparent=trace) as client:
        with pytest.raises(attendant.UnauthenticatedError) as caught:
            client.embed([[5, 6]])
        with pytest.raises(attendant.PermissionDeniedError):
            client.with_options(api_key=KEYS["viewer"]).embed([[5, 6]])
        assert client.with_options(api_key=lambda: KEYS["search"], request_id="mine").embed([[5, 6]]).shape == (1, 48)
        assert [model.name for model in client.with_options(api_key=KEYS["viewer"]).models()] == ["tiny"]
    with attendant.Client(server.grpc, tls=attendant.Tls(), timeout=None) as stranger:
        with pytest.raises(attendant.UnavailableError, match="the server's certificate is not trusted"):
            stranger.models()
    with attendant.Client(server.grpc, retry=attendant.Retry(max_attempts=1)) as plain:
        with pytest.raises(attendant.UnavailableError, match="Socket closed .the server may need TLS"):
            plain.models()
    server.terminate()
    server.wait()
    lines = {line.get("request_id"): line for line in map(json.loads, (tmp_path / "access.log").read_text().splitlines())}
    assert lines["mine"]["trace_id"] == trace.split("-")[1] and lines["mine"]["key"] == "search"
    assert lines[caught.value.request_id]["code"] == "UNAUTHENTICATED"
