# SPDX-License-Identifier: Apache-2.0
"""The package as an administrator meets it: installed, started, upgraded and purged on a machine that systemd has booted."""

import re
import shutil

import pytest

from harness import settings
from harness.server import wait_until
from machine import Machine, NoMachine

DEFAULTS = "/etc/default/attendant"
DROP_IN = "/etc/systemd/system/attendant.service.d/test.conf"
KEY = "0123456789abcdef0123456789abcdef"
FLAGS = "--model_repository=/var/lib/attendant/models --model_control=poll --repository_poll_s=1"


@pytest.fixture(scope="module")
def machine(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine")
    shutil.copy(package, folder / "attendant.deb")
    shutil.copytree(settings.TINY_MODEL, folder / "tiny")
    try:
        booted = Machine(folder)
    except NoMachine as reason:
        pytest.skip(str(reason))
    try:
        booted.run("dpkg", "--install", "/mnt/attendant.deb")
        booted.run("cp", "-r", "/mnt/tiny", "/var/lib/attendant/models/tiny")
        yield booted
    finally:
        booted.stop()


@pytest.fixture
def start(machine):
    """start(flags, unit): sets the service's flags, and these lines of its unit. How systemctl start ended."""
    def begin(flags=FLAGS, unit=""):
        machine.write(DEFAULTS, f'ATTENDANT_FLAGS="{flags}"\n')
        machine.write(DROP_IN, f"[Service]\n{unit}\n")
        machine.run("systemctl", "daemon-reload")
        return machine.ask("systemctl", "start", "attendant")
    yield begin
    machine.ask("systemctl", "stop", "attendant")
    machine.ask("systemctl", "reset-failed", "attendant")
    machine.run("rm", "-f", DEFAULTS, DROP_IN)


def shown(machine, name):
    return machine.run("systemctl", "show", f"--property={name}", "--value", "attendant").strip()


def restarts(machine, count):
    return lambda: shown(machine, "NRestarts") == str(count) and shown(machine, "ActiveState") == "active"


def serves(machine):
    machine.run("attendant", "health", "--service=tiny", "--wait=30s")


def test_a_start_ends_when_the_server_listens(machine, start):
    assert start().returncode == 0
    machine.run("attendant", "models")
    serves(machine)
    assert "listening" in machine.run("systemctl", "status", "attendant")


def test_a_start_with_wrong_flags_fails(machine, start):
    assert start("--no_such_flag=1").returncode != 0
    assert shown(machine, "ActiveState") == "failed" and shown(machine, "NRestarts") == "0"
    wait_until("the line", 30, lambda: "there is no flag --no_such_flag" in machine.run("journalctl", "--unit=attendant"))


def test_the_server_is_confined(machine, start):
    assert start().returncode == 0
    serves(machine)
    pid = shown(machine, "MainPID")
    status = dict(re.findall(r"^(\w+):\s*(\S+)", machine.run("cat", f"/proc/{pid}/status"), re.MULTILINE))
    assert status["Uid"] != "0" and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapBnd"], 16) == 0
    for path in ("/usr/file", "/etc/file", "/var/lib/attendant/models/file"):
        refused = machine.ask("nsenter", f"--target={pid}", "--mount", "touch", path)
        assert "Read-only file system" in refused.stderr, refused


def test_files_that_only_root_may_read(machine, start):
    """By the drop-in of deploy/debian/README.md."""
    page = (settings.ROOT / "deploy/debian/README.md").read_text()
    lines = re.search(r"^    \[Service\]\n((?:    .+\n)+)", page, re.MULTILINE)[1]
    machine.write("/etc/attendant/api_keys", f"{KEY} admin infer,read,admin\n", 0o600)
    machine.write("/etc/attendant/key", KEY, 0o600)
    machine.write(DROP_IN, "[Service]\n" + lines)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "attendant")
    machine.run("attendant", "models", "--api_key_file=/etc/attendant/key")
    assert "UNAUTHENTICATED" in machine.ask("attendant", "models").stderr
    machine.run("systemctl", "stop", "attendant")
    where = re.search(r"write `(\S+)` for `%d`", page)[1]
    assert start(f"{FLAGS} --api_keys={where}/api_keys", lines).returncode == 0


@pytest.mark.parametrize("signal", ["SEGV", "HUP"])
def test_a_server_that_ends_is_started_again(machine, start, signal):
    assert start(unit="RestartSec=100ms").returncode == 0
    serves(machine)
    machine.run("systemctl", "kill", f"--signal={signal}", "attendant")
    wait_until("the restart", 30, restarts(machine, 1))
    serves(machine)


def test_a_long_drain_is_not_cut_short(machine, start):
    assert start(f"{FLAGS} --drain_delay_s=2", "TimeoutStopSec=1").returncode == 0
    serves(machine)
    machine.run("systemctl", "stop", "attendant")
    assert shown(machine, "Result") == "success" and shown(machine, "ExecMainStatus") == "0"


def test_an_upgrade_starts_the_new_server(machine, start):
    assert start().returncode == 0
    old = shown(machine, "MainPID")
    machine.run("dpkg", "--install", "/mnt/attendant.deb")
    assert shown(machine, "MainPID") not in ("0", old)
    machine.run("attendant", "models")


def test_an_upgrade_succeeds_where_the_server_does_not_start(machine, start):
    assert start().returncode == 0
    machine.write(DEFAULTS, 'ATTENDANT_FLAGS="--no_such_flag=1"\n')
    machine.run("dpkg", "--install", "/mnt/attendant.deb")
    assert shown(machine, "ActiveState") == "failed"


def test_a_purge_leaves_the_models_alone(machine, start):
    assert start(f"{FLAGS} --access_log=/var/log/attendant/access.jsonl").returncode == 0
    machine.run("dpkg", "--remove", "attendant")
    assert machine.ask("systemctl", "is-active", "attendant").stdout == "inactive\n"
    machine.run("ls", "/var/log/private/attendant/access.jsonl")
    machine.run("dpkg", "--purge", "attendant")
    assert machine.run("ls", "/var/lib/attendant/models") == "tiny\n"
    assert machine.run("find", "/var/log", "-name", "attendant*") == ""
    machine.run("rm", "-r", "/var/lib/attendant/models/tiny")
    for action in ("--install", "--purge"):
        machine.run("dpkg", action, "/mnt/attendant.deb" if action == "--install" else "attendant")
    assert machine.ask("ls", "/var/lib/attendant").returncode != 0
