# SPDX-License-Identifier: Apache-2.0
"""A machine that systemd has booted, in a container over this system's own files, which it reads and does not change."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import time

START_SECONDS = 180


class NoMachine(Exception):
    """Says why there cannot be one here."""


class Machine:
    """Runs commands as root on the machine. `folder` is empty and is /mnt there. The network is its own."""

    def __init__(self, folder):
        if os.geteuid() != 0:
            raise NoMachine("needs root")
        if shutil.which("systemd-nspawn") is None:
            raise NoMachine("systemd-nspawn is not installed: deploy/install-deps.sh test installs it")
        self.folder = folder
        root = folder.parent / f"{folder.name}.root"  # nspawn refuses / by that name
        root.mkdir()
        self.console = folder.parent / f"{folder.name}.console"
        script = ('mount --bind / "$0" && exec systemd-nspawn --quiet --register=no --keep-unit --private-network '
                  '--volatile=overlay --directory="$0" --bind="$1":/mnt --console=pipe --boot -- --unit=basic.target')
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig=TERM", "unshare", "--mount", "sh", "-c", script, root,
                                             folder], stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        end = time.monotonic() + START_SECONDS
        while not self._is_up():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise NoMachine(f"systemd does not boot here: {self.console.read_text(errors='replace').strip()}")
            time.sleep(0.05)

    def _is_up(self):
        self.leader = self._find_leader()
        if not self.leader:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.ask("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")
        return False

    def _find_leader(self):
        """The machine's first process. Until it is systemd, it may still be in this system's namespaces."""
        with contextlib.suppress(OSError):
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            return next((child for child in children if pathlib.Path(f"/proc/{child}/comm").read_text() == "systemd\n"),
                        None)
        return None

    def ask(self, *command, **options):
        """How a command ended, with its output as text."""
        enter = ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
                 "--wd"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, timeout=180, check=False, **options)

    def run(self, *command, **options):
        """The output of a command that must succeed."""
        ended = self.ask(*command, **options)
        assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
        return ended.stdout

    def write(self, path, text, mode=0o644):
        self.run("install", "-D", f"--mode={mode:o}", "/dev/stdin", path, input=text)

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()  # an orderly end of the machine
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
