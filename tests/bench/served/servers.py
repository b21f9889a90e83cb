# SPDX-License-Identifier: Apache-2.0
"""The servers, each a process group of its own that is stopped while another one is measured."""

import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

START_SECONDS = 120
SORTED_BATCH = 32
SORTED_PADDED_TOKENS = 512
TITLES = {"sorted": "sorted", "1": "one by one"}
PR_SET_PDEATHSIG = 1

CONFIG = """name: "minilm"
backend: "python"
max_batch_size: {max_batch}
input [{{ name: "text" data_type: TYPE_STRING dims: [1] }}]
output [{{ name: "sentence_embedding" data_type: TYPE_FP32 dims: [384] }}]
instance_group [{{ kind: KIND_CPU count: 1 }}]
dynamic_batching {{ }}
"""
PARAMETER = 'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


class ServerError(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end_with_parent():
    """A stopped server would outlive a parent that was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """`arguments` start it; it is ready when `ready_url` answers 200."""

    def __init__(self, name, arguments, grpc, ready_url, log, environment=None):
        self.name = name
        self.grpc = grpc
        self.process = subprocess.Popen(arguments, stdout=log, stderr=log, env=environment, start_new_session=True,
                                        preexec_fn=end_with_parent)
        begin = time.monotonic()
        while not answers(ready_url):
            if self.process.poll() is not None or time.monotonic() - begin > START_SECONDS:
                self.close()
                raise ServerError(f"{name} did not start; see servers.log")
            time.sleep(0.01)
        self.start_seconds = time.monotonic() - begin
        self.pause()

    def pause(self):
        os.killpg(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.killpg(self.process.pid, signal.SIGCONT)

    def cpu_seconds(self):
        """Of the server's process and all its threads."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def attendant(options, log):
    grpc, http = free_port(), free_port()
    server = Server("Attendant", [
        options.bin / "attendant-server", f"--model=minilm={options.minilm}", f"--dtype={options.dtype}",
        f"--threads={options.threads}", f"--listen=127.0.0.1:{grpc}", f"--http_listen=127.0.0.1:{http}"],
        f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}/readyz", log)
    server.metrics_url = f"http://127.0.0.1:{http}/metrics"
    return server


def triton_home(folder):
    """The server that the wheel carries, with the Python back end's helper for this Python beside the back end."""
    import pytriton
    wheel = pathlib.Path(pytriton.__file__).parent / "tritonserver"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    backends = folder / "backends"
    shutil.copytree(wheel / "backends", backends)
    shutil.copy(wheel / "python_backend_stubs" / version / "triton_python_backend_stub", backends / "python")
    return wheel / "bin" / "tritonserver", backends


def triton(options, folder, log, kind):
    """`kind`: the largest batch that its dynamic batcher makes, or "sorted"."""
    shutil.rmtree(folder, ignore_errors=True)
    model = folder / "models" / "minilm"
    (model / "1").mkdir(parents=True)
    binary, backends = triton_home(folder)
    shutil.copy(pathlib.Path(__file__).parent / "triton_model.py", model / "1" / "model.py")
    parameters = {"tokenizer": options.minilm / "tokenizer.json", "openvino": options.openvino, "dtype": options.dtype,
                  "threads": options.threads, "max_padded_tokens": SORTED_PADDED_TOKENS if kind == "sorted" else 0}
    (model / "config.pbtxt").write_text(CONFIG.format(max_batch=SORTED_BATCH if kind == "sorted" else kind) + "".join(
        PARAMETER.format(name=name, value=value) for name, value in parameters.items()))
    grpc, http = free_port(), free_port()
    packages = pathlib.Path(sys.prefix) / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    return Server("Triton, " + TITLES.get(kind, f"batches of {kind}"), [
        binary, f"--model-repository={folder / 'models'}", f"--backend-directory={backends}",
        "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--http-address=127.0.0.1", f"--http-port={http}",
        "--allow-metrics=false", f"--backend-config=python,shm-region-prefix-name={folder.name}-{os.getpid()}"],
        f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}/v2/health/ready", log,
        os.environ | {"TRITON_MODEL_PACKAGES": str(packages), "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs"),
                      "TOKENIZERS_PARALLELISM": "false"})
