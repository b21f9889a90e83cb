# SPDX-License-Identifier: Apache-2.0
"""A copy of the scripts whose programs are stand-ins: nothing is installed, built, downloaded or served."""

import os
import pathlib
import select
import shutil
import signal
import subprocess

from harness import settings
from harness.server import wait_until

SECONDS = 60
MODEL = "all-MiniLM-L6-v2"


# oneDNN's source has a source of each sort that install-deps.sh looks for.
DPKG_SOURCE = r"""
mkdir -p source.partial/src/cpu/reorder
touch source.partial/src/cpu/{convolution,cpu_x_list}.cpp source.partial/src/cpu/reorder/cpu_reorder_x.cpp
"""


# Says when it waits.
FLOCK = '[ "$1" = --nonblock ] || echo waits >>"$LOG"; exec /usr/bin/flock "$@"'


# As cmake runs ninja: in its own process, which a signal to cmake does not reach.
BUILD = r"""
case " $* " in *" --build "*) ;; *) exit 0 ;; esac
bash -c 'exec 8>"$ALIVE"; echo builds >>"$LOG"; read -r _ <"$GATE"' &
wait
"""


class Scripts:
    """The scripts of the project in a folder of their own, with an empty cache. A stand-in may write lines into `log`, wait for
    `release` by reading a line of $GATE, and show by writing to $ALIVE how long it runs."""

    def __init__(self, folder):
        self.root, self.bin, self.cache = folder / "project", folder / "bin", folder / "cache"
        for part in ("deploy", "tests/bench/attention", "tests/bench/load", "tests/bench/peers", "tests/bench/served",
                     "tests/bench/shapes", "tests/integration", "tests/deploy/kubernetes"):
            shutil.copytree(settings.ROOT / part, self.root / part, symlinks=True)
        for file in ("tests/run.sh", "tests/bench/real_texts.py"):
            shutil.copy(settings.ROOT / file, self.root / file)
        self.bin.mkdir()
        self.log = folder / "log"
        self.log.touch()
        self.gate = folder / "gate"
        os.mkfifo(self.gate)
        self.gate_end = os.open(self.gate, os.O_RDWR)
        self.alive = folder / "alive"
        os.mkfifo(self.alive)
        self.alive_end = os.open(self.alive, os.O_RDONLY | os.O_NONBLOCK)
        self.processes = []

    def close(self):
        """Ends what runs, and what that has started."""
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait(SECONDS)
        os.close(self.gate_end)
        os.close(self.alive_end)

    def stub(self, path, text):
        """A program of bash: a name on the PATH, or a path in the project."""
        path = pathlib.Path(path)
        path = self.root / path if path.parent.parts else self.bin / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def replace(self, path, old, new):
        path = self.root / path
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def environment(self, **more):
        """Without the programs that are tested: with them no script builds."""
        inherited = {name: value for name, value in os.environ.items() if name != "ATTENDANT_BIN_DIR"}
        return {**inherited, "PATH": f"{self.bin}:{os.environ['PATH']}", "ATTENDANT_CACHE": str(self.cache), "LOG": str(self.log),
                "GATE": str(self.gate), "ALIVE": str(self.alive), "BIN": str(self.bin), "REAL_MODEL": str(settings.model_dir()), **more}

    def start(self, script, *arguments, **more):
        """Starts it in a session of its own."""
        process = subprocess.Popen([self.root / script, *arguments], env=self.environment(**more), start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        return process

    def interrupt(self, process, signal_number):
        """Sends the signal to the script alone, not to its group, as a service manager does, and awaits its end."""
        os.kill(process.pid, signal_number)
        output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 128 + signal_number, output

    def run(self, script, *arguments, **more):
        """(exit code, output)"""
        process = self.start(script, *arguments, **more)
        output, _ = process.communicate(timeout=SECONDS)
        return process.returncode, output

    def lines(self):
        return self.log.read_text().splitlines()

    def wait_for(self, what, condition):
        """Until the log's lines meet the condition."""
        wait_until(what, SECONDS, lambda: condition(self.lines()))

    def wait_for_the_end(self, what):
        """Until nothing has $ALIVE open."""
        wait_until(f"the end of {what}", SECONDS, lambda: select.select([self.alive_end], [], [], 0)[0])

    def release(self, times=1):
        os.write(self.gate_end, b"\n" * times)

    def packages_are_installed(self, onednn=True):
        """Without onednn Debian's is too old, and its source is to be had."""
        self.stub("dpkg-query", "echo 'install ok installed'")
        version = "3.7.2" if onednn else "2.6"
        self.stub("apt-cache", f"echo '  Candidate: {version}'; echo 'Version: 3.7.2+ds-1'")
        self.stub("apt-get", '[[ "$*" != *" source "* ]] || touch onednn_1.dsc')
        self.stub("dpkg-source", DPKG_SOURCE)

    def model_is_there(self):
        shutil.copytree(settings.model_dir(), self.cache / "models" / MODEL, copy_function=os.symlink)
