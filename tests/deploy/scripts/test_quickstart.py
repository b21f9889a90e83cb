# SPDX-License-Identifier: Apache-2.0
"""deploy/quickstart.sh around a server that is none."""

import pathlib
import re
import shutil
import signal
import socket

import pytest

from stubs import BUILD, FLOCK

# Writes its ports, and serves until SIGTERM.
SERVER = r"""
for argument; do case "$argument" in --port_file=*) printf 'grpc=1234\nhttp=1235\n' >"${argument#*=}" ;; esac; done
trap 'kill $!; exit 0' TERM
sleep infinity & wait
"""
CURL = r"""
echo "curl ${!#}" >>"$LOG"
echo 'attendant_requests_total{model="minilm",code="OK"} 1'
"""


@pytest.fixture
def quickstart(scripts):
    """Its packages are there, and its model and server."""
    scripts.packages_are_installed()
    scripts.model_is_there()
    scripts.stub("cmake", "")
    scripts.stub("curl", CURL)
    scripts.stub("build/release/bin/attendant-server", SERVER)
    scripts.stub("build/release/bin/attendant", 'echo "attendant $*" >>"$LOG"')
    return scripts


@pytest.mark.parametrize("listens,reached", [
    ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("[::]", "127.0.0.1"),
    ("127.0.0.2", "127.0.0.2"), ("[::1]", "[::1]"), ("localhost", "localhost")])
def test_the_server_is_asked_where_it_listens(quickstart, listens, reached):
    code, output = quickstart.run("deploy/quickstart.sh", "--once", f"--listen={listens}:0", f"--http_listen={listens}:0")
    assert code == 0, output
    asked = [line.split("--server=")[1].split()[0] for line in quickstart.lines() if "--server=" in line]
    assert len(asked) >= 2 and set(asked) == {f"{reached}:1234"}
    assert f"curl http://{reached}:1235/metrics" in quickstart.lines()


@pytest.mark.parametrize("address", ["127.0.0.2", "[::1]"])
def test_a_port_counts_as_taken_where_the_server_is_to_listen(quickstart, address):
    family = socket.AF_INET6 if address.startswith("[") else socket.AF_INET
    with socket.socket(family) as taken:
        taken.bind((address.strip("[]"), 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, output = quickstart.run("deploy/quickstart.sh", "--once", f"--listen={address}:{port}")
        assert code == 1 and f"port {port} is taken" in output, output
        code, output = quickstart.run("deploy/quickstart.sh", "--once", f"--listen=127.0.0.1:{port}", "--http_listen=127.0.0.1:0")
        assert code == 0, output


@pytest.mark.parametrize("flag", ["--listen", "--http_listen"])
@pytest.mark.parametrize("port", ["99999", "65536", "http", "", "-1", "080808"])
def test_a_port_that_there_is_not_costs_no_build(quickstart, flag, port):
    quickstart.stub("cmake", 'echo builds >>"$LOG"')
    code, output = quickstart.run("deploy/quickstart.sh", "--once", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
                                  f"{flag}=127.0.0.1:{port}")
    assert code == 1 and f"{flag}=127.0.0.1:{port}: a port is a number from 0 to 65535" in output, output
    assert not quickstart.lines()


def test_the_log_that_an_error_names_is_there(quickstart):
    quickstart.stub("build/release/bin/attendant-server", "echo a fault; exit 1")
    code, output = quickstart.run("deploy/quickstart.sh", "--once", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0")
    assert code == 1
    named = re.search(r"error: the server ended: (\S+)", output)
    assert named, output
    log = pathlib.Path(named[1])
    assert log.read_text() == "a fault\n"
    shutil.rmtree(log.parent)


def test_nothing_is_left_of_a_run_that_went_well(quickstart, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code, output = quickstart.run("deploy/quickstart.sh", "--once", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
                                  TMPDIR=str(temporary))
    assert code == 0, output
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("what", ["server", "oneDNN"])
def test_a_signal_ends_the_build_too(quickstart, what, signal_number):
    quickstart.packages_are_installed(onednn=what == "server")
    quickstart.stub("cmake", BUILD)
    process = quickstart.start("deploy/quickstart.sh", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0")
    quickstart.wait_for("the build", lambda lines: "builds" in lines)
    quickstart.interrupt(process, signal_number)
    quickstart.wait_for_the_end("the build")


# `python3 -m venv` makes a pip that never ends, in a process of its own.
PYTHON = r"""
case "$*" in "-m venv "*) mkdir -p "$3/bin" && cp "$(command -v pip)" "$3/bin/pip" ;; esac
"""
PIP = r"""
bash -c 'exec 8>"$ALIVE"; echo downloads >>"$LOG"; read -r _ <"$GATE"' &
wait
"""


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("script", ["quickstart.sh --listen=127.0.0.1:0 --http_listen=127.0.0.1:0", "fetch-model.sh",
                                    "fetch-cuda.sh", "install-deps.sh cuda"])
def test_a_signal_ends_the_download_too(quickstart, script, signal_number):
    shutil.rmtree(quickstart.cache)
    quickstart.stub("python3", PYTHON)
    quickstart.stub("pip", PIP)
    quickstart.stub("dpkg", '[[ "$*" != *" ge 13.0" ]] && exec /usr/bin/dpkg "$@"')  # no CUDA compiler is new enough
    process = quickstart.start(*f"deploy/{script}".split())
    quickstart.wait_for("the download", lambda lines: "downloads" in lines)
    quickstart.interrupt(process, signal_number)
    quickstart.wait_for_the_end("the download")
    assert not list(quickstart.cache.rglob("*.fetch.*"))


COMPILE = r"""
case " $* " in *" --build "*) echo builds >>"$LOG"; read -r _ <"$GATE"; echo built >>"$LOG" ;; esac
"""


def test_a_second_run_waits_for_the_build_of_the_first(quickstart):
    quickstart.stub("flock", FLOCK)
    quickstart.stub("cmake", COMPILE)
    arguments = ("deploy/quickstart.sh", "--once", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0")
    first = quickstart.start(*arguments)
    quickstart.wait_for("the first build", lambda lines: "builds" in lines)
    second = quickstart.start(*arguments)
    quickstart.wait_for("the second run", lambda lines: "waits" in lines or lines.count("builds") == 2)
    quickstart.release(2)
    for process in (first, second):
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
    assert "waiting for another run that makes" in output
    assert [line for line in quickstart.lines() if line in ("builds", "built")] == ["builds", "built"] * 2
