# SPDX-License-Identifier: Apache-2.0
"""The servers, each a process group of its own that is stopped while another one is measured."""

import contextlib
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
COMPUTING = ("batch-", "compute")  # Attendant's threads

CONFIG = """name: "minilm"
backend: "python"
max_batch_size: {max_batch}
input [{{ name: "text" data_type: TYPE_STRING dims: [1] }}]
output [{{ name: "sentence_embedding" data_type: TYPE_FP32 dims: [384] }}]
instance_group [{{ kind: KIND_CPU count: {instances} }}]
dynamic_batching {{ }}
"""
PARAMETER = 'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


class ServerError(Exception):
    pass


def free_ports(count):
    """Different ones: all are bound before the first is given back."""
    with contextlib.ExitStack() as bound:
        probes = [bound.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def end_with_parent():
    """A stopped server would outlive a parent that was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """`arguments` start it; it is ready when `ready_url` answers 200. `grpc` and `http` are its addresses."""

    def __init__(self, name, arguments, grpc, http, ready_url, log, environment=None):
        self.name = name
        self.grpc, self.http = grpc, http
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
        """Of the server's processes, all their threads: Triton's Python back end is a process of its own."""
        stats = map(read_if_there, pathlib.Path("/proc").glob("[0-9]*/stat"))
        return ticks(stats, self.process.pid) / os.sysconf("SC_CLK_TCK")

    def own_seconds(self):
        """Of Attendant's threads that compute no batch: they read, tokenize and write. One that has ended is not counted."""
        stats = map(read_if_there, pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/stat"))
        return ticks_outside(stats, COMPUTING) / os.sysconf("SC_CLK_TCK")

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def read_if_there(path):
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def ticks(stats, group):
    """The processor time of a process group, from the /proc/PID/stat of all processes."""
    fields = (stat.rpartition(")")[2].split() for stat in stats)
    return sum(int(each[11]) + int(each[12]) for each in fields if each and int(each[2]) == group)


def ticks_outside(stats, prefixes):
    """The processor time of the threads whose names begin otherwise, from their stat."""
    named = ((stat.partition("(")[2].rpartition(")")[0], stat.rpartition(")")[2].split()) for stat in stats)
    return sum(int(each[11]) + int(each[12]) for name, each in named if each and not name.startswith(prefixes))


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def attendant(options, log, split):
    """`split`: the number of replicas and the threads of each."""
    grpc, http = free_ports(2)
    server = Server("Attendant", [
        options.bin / "attendant-server", f"--model=minilm={options.minilm}", f"--dtype={options.dtype}",
        f"--threads={split.streams * split.threads}", f"--replicas={split.streams}",
        f"--listen=127.0.0.1:{grpc}", f"--http_listen=127.0.0.1:{http}"],
        f"127.0.0.1:{grpc}", f"127.0.0.1:{http}", f"http://127.0.0.1:{http}/readyz", log)
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


def triton_config(options, kind, split):
    """Each instance of a model is a process of its own, with OpenVINO in it."""
    parameters = {"tokenizer": options.minilm / "tokenizer.json", "openvino": options.openvino, "dtype": options.dtype,
                  "threads": split.threads, "max_padded_tokens": SORTED_PADDED_TOKENS if kind == "sorted" else 0}
    return CONFIG.format(max_batch=SORTED_BATCH if kind == "sorted" else kind, instances=split.streams) + "".join(
        PARAMETER.format(name=name, value=value) for name, value in parameters.items())


def triton_name(kind):
    return "Triton, " + TITLES.get(kind, f"batches of {kind}")


def triton(options, folder, log, kind, split):
    """`kind`: the largest batch that its dynamic batcher makes, or "sorted"; `split`: the number of the model's instances
    and OpenVINO's threads in each."""
    shutil.rmtree(folder, ignore_errors=True)
    model = folder / "models" / "minilm"
    (model / "1").mkdir(parents=True)
    binary, backends = triton_home(folder)
    shutil.copy(pathlib.Path(__file__).parent / "triton_model.py", model / "1" / "model.py")
    (model / "config.pbtxt").write_text(triton_config(options, kind, split))
    grpc, http = free_ports(2)
    packages = pathlib.Path(sys.prefix) / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    return Server(triton_name(kind), [
        binary, f"--model-repository={folder / 'models'}", f"--backend-directory={backends}",
        "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--http-address=127.0.0.1", f"--http-port={http}",
        "--allow-metrics=false", f"--backend-config=python,shm-region-prefix-name={folder.name}-{os.getpid()}"],
        f"127.0.0.1:{grpc}", f"127.0.0.1:{http}", f"http://127.0.0.1:{http}/v2/health/ready", log,
        os.environ | {"TRITON_MODEL_PACKAGES": str(packages), "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs"),
                      "TOKENIZERS_PARALLELISM": "false"})


def infinity(options, log):
    """PyTorch behind infinity's batches of at most 32, in the same format."""
    [http] = free_ports(1)
    return Server("infinity", [
        options.infinity / "bin" / "infinity_emb", "v2", "--model-id", options.minilm, "--served-model-name", "minilm",
        "--engine", "torch", "--device", "cpu", "--dtype", {"bf16": "bfloat16", "f32": "float32"}[options.dtype],
        "--no-bettertransformer", "--batch-size", "32", "--host", "127.0.0.1", "--port", str(http), "--url-prefix", "/v1",
        "--log-level", "warning"],
        None, f"127.0.0.1:{http}", f"http://127.0.0.1:{http}/health", log,
        os.environ | {"OMP_NUM_THREADS": str(options.threads), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
                      "INFINITY_ANONYMOUS_USAGE_STATS": "0", "DO_NOT_TRACK": "1"})
