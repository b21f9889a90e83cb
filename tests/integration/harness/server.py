# SPDX-License-Identifier: Apache-2.0
"""A server process: started on free ports of the loopback interface, watched, stopped by SIGTERM."""

import contextlib
import json
import pathlib
import re
import resource
import signal
import subprocess
import time
import urllib.error
import urllib.request

from harness import settings

START_SECONDS = 300  # of models that warm up while other programs compute
STOP_SECONDS = 90 * settings.PATIENCE
DESCRIPTORS = 300
SANITIZER_REPORT = re.compile(r"(ERROR|WARNING|SUMMARY): \w+Sanitizer|: runtime error: ")


def wait_until(what, seconds, condition):
    """The first true value of condition(); fails when there is none within the time, which a sanitizer stretches. The last
    look begins after the time: this process may have stood still meanwhile."""
    seconds *= settings.PATIENCE
    end = time.monotonic() + seconds
    while True:
        last = time.monotonic() >= end
        value = condition()
        if value:
            return value
        if last:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def few_descriptors():
    """For the process that calls it: at most DESCRIPTORS."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


class Server:
    """Runs with the models {name: folder} and further command-line arguments. `folder` takes its files; the new process
    calls `preexec_fn` first. `prefix` is a command that runs the server as its last step, with the same process id.
    `listen` is an address, and the ports of gRPC and of HTTP there."""

    def __init__(self, folder, models, *arguments, preexec_fn=None, prefix=(), listen=("127.0.0.1", 0, 0)):
        self.bin_dir = settings.bin_dir()
        self.port_file = folder / "ports"
        self.log_file = folder / "server.log"
        address, grpc_port, http_port = listen
        command = [self.bin_dir / "attendant-server", f"--listen={address}:{grpc_port}",
                   f"--http_listen={address}:{http_port}", f"--port_file={self.port_file}"]
        command += [f"--model={name}={path}" for name, path in models.items()]
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([*prefix, *command, *arguments], stdout=log, stderr=log,
                                            preexec_fn=preexec_fn)
        ports = wait_until("the server's ports", START_SECONDS, self._read_ports)
        self.grpc = f"{address}:{ports['grpc']}"
        self.http = f"{address}:{ports['http']}"
        self.pid = self.process.pid
        self.killed = False

    def _read_ports(self):
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.log()}"
        if not self.port_file.exists():
            return None
        return dict(line.split("=") for line in self.port_file.read_text().split())

    def log(self):
        return self.log_file.read_text(errors="replace")

    def threads(self):
        """The name of each of its threads."""
        names = []
        for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/comm"):
            with contextlib.suppress(OSError):  # one that has ended meanwhile
                names.append(path.read_text().strip())
        return names

    def get(self, path):
        """Status code and body of an HTTP answer."""
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", timeout=30 * settings.PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def post(self, path, body, headers):
        """The same for a body that is sent there."""
        data = body if isinstance(body, bytes) else body.encode()
        request = urllib.request.Request(f"http://{self.http}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=30 * settings.PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def post_json(self, path, body, model="", code=200):
        """The JSON of an HTTP answer to a body in JSON; its status code must be this one. A header names the model of
        protocols whose bodies do not."""
        headers = {"Content-Type": "application/json"} | ({"X-Model": model} if model else {})
        found, answer = self.post(path, json.dumps(body), headers)
        assert found == code, f"{path}: {found} {answer}"
        return json.loads(answer)

    def wait_ready(self):
        """Until /readyz says so, and what the server tells of its last model a moment later: its line in the log, its
        series, gRPC's health, and after these attendant_ready."""
        wait_until("/readyz", START_SECONDS, lambda: self.get("/readyz")[0] == 200)
        wait_until("attendant_ready", 30, lambda: "\nattendant_ready 1\n" in self.get("/metrics")[1])
        return self

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def kill(self):
        """Until it has died of SIGKILL."""
        self.killed = True
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def wait(self):
        """The exit code. Fails when a sanitizer has reported anything."""
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still running {STOP_SECONDS} s after SIGTERM:\n{self.log()}") from None
        assert not SANITIZER_REPORT.search(self.log()), f"the server ended with {code}:\n{self.log()}"
        return code

    def stop(self):
        """SIGTERM, and the server must have drained and ended without complaint, unless kill() ended it."""
        if self.killed:
            return
        if self.process.poll() is None:
            self.terminate()
        code = self.wait()
        assert code == 0, f"the server ended with {code}:\n{self.log()}"


@contextlib.contextmanager
def serving(*arguments, **options):
    """A Server of these arguments, from when its models are ready until it is stopped."""
    running = Server(*arguments, **options)
    try:
        yield running.wait_ready()
    finally:
        running.stop()


@contextlib.contextmanager
def starting(make_folder):
    """start({name: folder}, "--flag=value", ...): a Server that is stopped at the end. `make_folder` makes a new folder
    of a name."""
    with contextlib.ExitStack() as started:
        def start(models, *arguments, **options):
            running = Server(make_folder("server"), models, *arguments, **options)
            started.callback(running.stop)
            return running
        yield start
