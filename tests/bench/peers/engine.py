# SPDX-License-Identifier: Apache-2.0
"""An engine in a process of its own that answers lines. It is stopped while another one is measured: several
libraries keep their idle threads spinning, and would slow the next engine down."""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ANSWER_SECONDS = 1200
PR_SET_PDEATHSIG = 1


class EngineError(Exception):
    pass


def command(name, folder, dtype, options, split):
    """`attendant`, a peer, or a variant of Attendant: `attendant-threads=1`. `split`: see ways.py."""
    base, _, change = name.partition("-")
    if base != "attendant":
        return [sys.executable, "-B", f"{HERE}/worker.py", name, str(folder), dtype, str(split.streams),
                str(split.threads), str(options.seconds)]
    flags = {"model": folder / "checkpoint", "dtype": dtype, "threads": split.streams * split.threads,
             "replicas": split.streams, "max_batch_tokens": options.max_batch_tokens, "seconds": options.seconds}
    if change:
        flags.update([change.split("=")])
    return [options.engine_bench, "--commands", *(f"--{flag}={value}" for flag, value in flags.items())]


def shape_command(shape, dtype, options, **flags):
    """Random weights in a shape of tests/bench/shapes."""
    flags = {"shape": shape, "dtype": dtype, "threads": options.threads, "seconds": options.seconds} | flags
    return [options.engine_bench, "--commands", *(f"--{flag}={value}" for flag, value in flags.items())]


def long_command(model, dtype, length, options):
    """With a position table that is long enough."""
    return shape_command(model, dtype, options, max_positions=length, max_batch_tokens=length)


def end_with_parent():
    """A stopped process would not notice that its standard input has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Engine:
    """`threads` of each stream; `log` takes what it prints to standard error."""

    def __init__(self, arguments, threads, log):
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(
            arguments, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            env=environment, start_new_session=True, preexec_fn=end_with_parent)
        self.pending = b""
        try:
            self.about = self.answer()
            self.pause()
        except EngineError:
            self.close()
            raise

    def signal(self, number):
        """To the engine and the processes that it has started."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def pause(self):
        self.signal(signal.SIGSTOP)

    def ask(self, line):
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise EngineError(f"ended with {self.process.wait()}; see engines.log") from None
        answer = self.answer()
        self.pause()
        return answer

    def answer(self):
        while b"\n" not in self.pending:
            if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
                raise EngineError(f"no answer within {ANSWER_SECONDS} s")
            read = os.read(self.process.stdout.fileno(), 1 << 20)
            if not read:
                raise EngineError(f"ended with {self.process.wait()}; see engines.log")
            self.pending += read
        line, _, self.pending = self.pending.partition(b"\n")
        fields = json.loads(line)
        if "error" in fields:
            raise EngineError(fields["error"])
        return fields

    def close(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
