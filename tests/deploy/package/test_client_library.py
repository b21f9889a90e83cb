# SPDX-License-Identifier: Apache-2.0
"""The C++ client alone, for programs outside the tree: they find it installed, or build it with theirs. CMake ends where one
of them asks for a package that only the server needs."""

import re
import subprocess
import sys

import pytest

from harness import settings

CLIENT = settings.ROOT / "client"
OF_THE_CLIENT = {"absl", "Protobuf", "gRPC"} | {"OpenSSL", "PkgConfig", "Threads", "ZLIB"}  # the latter are gRPC's own

PLUGIN = f"""
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES CXX)
add_subdirectory({CLIENT} attendant_client)
add_library(plugin SHARED plugin.cc)
target_link_libraries(plugin PRIVATE attendant::client)
"""
PLUGIN_SOURCE = """
#include "client/client.h"

extern "C" bool Connects(const char* target) {
  return attendant::client::Client::Connect({.target = target}).ok();
}
"""
USE_OF_PLUGIN = """
import ctypes, sys
plugin = ctypes.CDLL(sys.argv[1])
plugin.Connects.restype = ctypes.c_bool
print(plugin.Connects(b"127.0.0.1:8001"), plugin.Connects(b"http://127.0.0.1:8001"))
"""


def run(*command):
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def packages():
    """What the whole project asks for."""
    files = [settings.ROOT / f"cmake/{name}Dependencies.cmake" for name in ("", "Kernel", "Client")]
    return set(re.findall(r"^ *find_package\(([\w-]+)", "\n".join(path.read_text() for path in files), re.MULTILINE))


def build(source, folder, *options):
    without = packages() - OF_THE_CLIENT
    assert {"dnnl", "prometheus-cpp"} <= without
    run("cmake", "-S", source, "-B", folder, *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in without), *options)
    run("cmake", "--build", folder, "--parallel", "2")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that cmake --install filled. It was moved: nothing in it may name where it was."""
    folder = tmp_path_factory.mktemp("installed")
    build(CLIENT, folder / "build")
    run("cmake", "--install", folder / "build", "--prefix", folder / "first")
    return (folder / "first").rename(folder / "moved")


def test_a_program_uses_it(installed, start_server, tmp_path):
    model = settings.ROOT / "tests/golden/encoder/tiny_distilbert"
    server = start_server({"tiny": model}).wait_ready()
    build(CLIENT / "example", tmp_path, f"-DCMAKE_PREFIX_PATH={installed}")
    lines = [line.split("  ", 1) for line in run(tmp_path / "embed", server.grpc, "a film", "a book").splitlines()]
    assert [text for _, text in lines] == ["a film", "a book"]
    assert abs(float(lines[0][0]) - 1) < 1e-5 and -1 <= float(lines[1][0]) < 1


def test_a_shared_library_builds_it(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PLUGIN)
    (tmp_path / "plugin.cc").write_text(PLUGIN_SOURCE)
    build(tmp_path, tmp_path / "build")
    assert run(sys.executable, "-c", USE_OF_PLUGIN, tmp_path / "build/libplugin.so").split() == ["True", "False"]


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


def test_it_has_the_projects_version():
    of_project, of_client = (re.search(r"^ *project\(\w+ VERSION ([\d.]+)", (folder / "CMakeLists.txt").read_text(),
                                       re.MULTILINE)[1] for folder in (settings.ROOT, CLIENT))
    assert of_client == of_project
