# SPDX-License-Identifier: Apache-2.0
"""The installed C++ client: a program outside the tree finds it, links it and asks a server."""

import re
import subprocess

import pytest

from harness import settings

BUILD = settings.bin_dir().parent
EXAMPLE = settings.ROOT / "client/example"

pytestmark = pytest.mark.skipif(not (BUILD / "CPackConfig.cmake").exists(), reason=f"{BUILD} is no build folder")


def run(*command):
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that cmake --install filled. It was moved: nothing in it may name where it was."""
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", folder / "first", "--component", "client")
    return (folder / "first").rename(folder / "moved")


def test_a_program_uses_it(installed, start_server, tmp_path):
    model = settings.ROOT / "tests/golden/encoder/tiny_distilbert"
    server = start_server({"tiny": model}).wait_ready()
    run("cmake", "-S", EXAMPLE, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path)
    lines = [line.split("  ", 1) for line in run(tmp_path / "embed", server.grpc, "a film", "a book").splitlines()]
    assert [text for _, text in lines] == ["a film", "a book"]
    assert abs(float(lines[0][0]) - 1) < 1e-5 and -1 <= float(lines[1][0]) < 1


def test_contents(installed):
    """Headers include each other, Abseil's and the standard library's alone. Nothing names a folder of this machine."""
    files = {str(path.relative_to(installed)): path for path in installed.rglob("*") if path.is_file()}
    root = "include/attendant/"
    headers = {name.removeprefix(root) for name in files if name.startswith(root)}
    assert {"client/client.h", "client/attention.h", "client/ordered_encoder.h"} <= headers
    for name in headers:
        for included in re.findall(r'#include "([^"]+)"', files[root + name].read_text()):
            assert included in headers or included.startswith("absl/"), (name, included)
    for name, path in files.items():
        if name.endswith(".cmake"):
            text = path.read_text()
            assert str(settings.ROOT) not in text and str(installed.parent) not in text, name
