# SPDX-License-Identifier: Apache-2.0
"""The programs as a user runs them: what they print, and the exit codes that scripts rely on."""

import gzip
import json
import math
import resource
import socket
import subprocess
import threading

import numpy as np
import pytest

from harness import golden, settings
from harness.slow_client import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame, header

OK, SERVER_ERROR, USAGE, NO_ANSWER = range(4)


@pytest.fixture(scope="module")
def attendant(server):
    """attendant(COMMAND, ...) asks the shared server; the finished process must have the exit code `code`."""
    def run(*arguments, code=OK, stdin=None, to=server.grpc):
        command = [settings.bin_dir() / "attendant", arguments[0], f"--server={to}", *map(str, arguments[1:])]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)
        assert done.returncode == code, f"{command}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        assert code == OK or done.stderr
        return done.stdout.decode()
    return run


def lines(output):
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def free_address():
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_embed_writes_the_embeddings(attendant, sentences, tmp_path):
    strings, _, expected = sentences
    one_line = [index for index, string in enumerate(strings) if string and not set(string) & set("\r\n")]
    answers = lines(attendant("embed", "--model=minilm", "--json", "--", *(strings[i] for i in one_line)))
    assert [answer["text"] for answer in answers] == [strings[i] for i in one_line]
    embeddings = np.array([answer["embedding"] for answer in answers], np.float32)
    assert np.abs(embeddings - expected[one_line]).max() <= 1e-5

    file = tmp_path / "texts.txt"
    file.write_text("\n".join(strings[i] for i in one_line) + "\n", encoding="utf-8")
    from_stdin = lines(attendant("embed", "--model=minilm", "--json", stdin=file.read_bytes()))
    assert from_stdin == answers
    attendant("embed", "--model=minilm", f"--file={file}", f"--output={tmp_path / 'out.npy'}")
    assert np.array_equal(np.load(tmp_path / "out.npy"), embeddings)


def test_a_file_beyond_the_limit_of_files_is_not_left_behind(server, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))  # an embedding has more bytes

    done = subprocess.run([settings.bin_dir() / "attendant", "embed", f"--server={server.grpc}", "--model=minilm",
                           "--output=out.npy", "Hi"],
                          cwd=tmp_path, preexec_fn=limit, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == USAGE, done
    assert "cannot write the file out.npy: File too large" in done.stderr
    assert not list(tmp_path.iterdir())


def test_embed_shows_what_is_similar(attendant, sentences):
    strings, _, expected = sentences
    answer = json.loads(attendant("embed", "--model=minilm", "--similarity", "--json", *strings[26:29]))
    assert np.abs(np.array(answer["cosines"]) - expected[26:29] @ expected[26:29].T).max() <= 1e-5
    assert "Most similar" in attendant("embed", "--model=minilm", "--similarity", *strings[26:29])


def test_embed_options(attendant):
    answer = lines(attendant("embed", "--model=minilm", "--json", "--pooling=cls", "--dims=16", "--no-normalize", "Hi"))
    assert len(answer[0]["embedding"]) == 16
    assert not math.isclose(np.linalg.norm(answer[0]["embedding"]), 1, abs_tol=1e-3)


def test_encode_shows_hidden_states(attendant):
    case = golden.cases("tiny_gelu")["len_7"]
    token_ids = ",".join(map(str, case["token_ids"]))
    answer = lines(attendant("encode", "--model=tiny", "--json", f"--ids={token_ids}"))[0]
    states = np.array(answer["last_hidden_state"], np.float32)
    assert np.abs(states - case["last_hidden_state"]).max() <= 2e-5
    text = lines(attendant("encode", "--model=minilm", "--json", "hello world"))[0]
    assert text["token_ids"] == [101, 7592, 2088, 102]


def test_models(attendant):
    models = {model["name"]: model for model in json.loads(attendant("models", "--json"))["models"]}
    assert models.keys() == {"minilm", "tiny"}
    minilm = models["minilm"]
    assert (minilm["state"], minilm["layers"], minilm["hidden"]) == ("ready", 6, 384)
    assert (minilm["max_text_tokens"], minilm["max_sequence_tokens"]) == (256, 512)
    assert "minilm" in attendant("models")


def test_health(attendant, free_address):
    assert attendant("health").strip() == "SERVING"
    assert json.loads(attendant("health", "--service=minilm", "--json"))["status"] == "SERVING"
    attendant("health", "--service=nobody", code=SERVER_ERROR)
    attendant("health", code=NO_ANSWER, to=free_address)


@pytest.mark.parametrize("arguments", [
    ("--model=minilm", "--lengths=mixed"),
    ("--model=minilm", "--lengths=fixed:16", "--batch=4", "--output=hidden"),
    ("--model=minilm", "--lengths=uniform:4:64", "--rate=20"),
    ("--protocol=kserve", "--model=minilm.ids", "--lengths=fixed:16"),
    ("--protocol=kserve", "--model=minilm", "--lengths=fixed:16"),
    ("--protocol=tei", "--model=minilm", "--lengths=fixed:16", "--rate=30", "--arrivals=constant"),
])
def test_load(attendant, arguments):
    report = json.loads(attendant("load", "--json", "--connections=2", "--requests=40", *arguments))
    assert report["requests"] == {"ok": 40, "failed": 0, "not_sent": 0, "cut_off": 0}
    latency = report["latency_s"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert report["requests_per_s"] > 0


def test_load_with_texts(attendant, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("a text\nanother, longer text\n", encoding="utf-8")
    report = attendant("load", "--model=minilm", f"--texts={file}", "--requests=10")
    assert "10 ok, 0 failed" in report and "p99" in report


def test_errors_have_their_exit_codes(attendant, free_address, tmp_path):
    attendant("embed", "--model=nobody", "text", code=SERVER_ERROR)
    attendant("encode", "--model=tiny", "--ids=5,97", code=SERVER_ERROR)
    attendant("load", "--model=nobody", "--requests=3", code=SERVER_ERROR)
    attendant("embed", "two models, none named", code=USAGE)
    attendant("embed", "--model=minilm", "--no-such-flag", "text", code=USAGE)
    attendant("embed", "--model=minilm", f"--file={tmp_path / 'missing'}", code=USAGE)
    attendant("embed", "--model=minilm", stdin=b"\xff\xfe\n", code=USAGE)
    attendant("embed", "--model=minilm", "--timeout=2s", "text", code=NO_ANSWER, to=free_address)
    attendant("load", "--model=minilm", "--requests=3", "--timeout=2s", code=NO_ANSWER, to=free_address)


def frames(connection):
    """The kind and the stream of each frame that a client sends."""
    stream = connection.makefile("rb")
    stream.read(24)  # the preface
    while head := stream.read(9):
        stream.read(int.from_bytes(head[:3], "big"))
        yield head[3], int.from_bytes(head[5:], "big")


def answer_by_gzip(listener):
    """Answers the calls of one client by a message of no bytes, compressed though the client takes none."""
    connection, _ = listener.accept()
    message = gzip.compress(b"")
    with connection:
        connection.sendall(frame(SETTINGS, 0, 0, b"") + frame(SETTINGS, ACK, 0, b""))
        for kind, stream in frames(connection):
            if kind == HEADERS:
                head = b"\x88" + header("content-type", "application/grpc") + header("grpc-encoding", "gzip")  # and 200
                connection.sendall(frame(HEADERS, END_HEADERS, stream, head)
                                   + frame(DATA, 0, stream, b"\1" + len(message).to_bytes(4, "big") + message)
                                   + frame(HEADERS, END_HEADERS | END_STREAM, stream, header("grpc-status", "0")))


def test_a_compressed_answer_is_refused(attendant):
    """gRPC would inflate it without a bound: a MiB to a GiB."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer_by_gzip, args=(listener,))
        server.start()
        attendant("models", code=SERVER_ERROR, to=f"127.0.0.1:{listener.getsockname()[1]}")
        server.join()


def serve(*arguments):
    """A server that must end by itself: its exit code and what it said."""
    command = [settings.bin_dir() / "attendant-server", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.returncode, done.stdout.decode()


def test_server_refuses_a_command_line_that_cannot_be_meant(server, tmp_path):
    model = f"--model=tiny={settings.TINY_MODEL}"
    for arguments, word in (
            ((), "--model"), ((model, "--no_such_flag=1"), "no_such_flag"), ((model, "--threads=-1"), "threads"),
            ((model, "--dtype=f7"), "f7"), ((model, model), "tiny"), (("--model=tiny",), "NAME=DIR"),
            ((f"--model_repository={tmp_path}",), "model_repository")):
        code, said = serve(*arguments)
        assert code == 2 and word in said, f"{arguments}: {code}\n{said}"
    for flag, address in (("--listen", server.grpc), ("--http_listen", server.http)):
        code, said = serve(model, f"{flag}={address}")
        assert code == 1 and flag in said and address in said, said


def test_a_repository_that_cannot_be_read_may_be_there_at_the_next_start(tmp_path):
    """As on a disk of the network that is not mounted yet."""
    for control in ("none", "poll"):
        code, said = serve(f"--model_repository={tmp_path / 'later'}", f"--model_control={control}", "--log_format=json")
        assert code == 1 and "No such file" in json.loads(said)["message"], said


def test_server_refuses_instructions_that_the_machine_lacks():
    with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
        if "amx_tile" in cpuinfo.read():
            pytest.skip("this machine has every level")
    code, said = serve(f"--model=tiny={settings.TINY_MODEL}", "--cpu_isa=amx")
    assert code == 1 and "cannot compute with amx: it lacks" in said, said


def test_server_without_any_model_that_loads_ends(tmp_path):
    code, said = serve(f"--model=missing={tmp_path / 'missing'}")
    assert code == 1 and "missing" in said


def test_help_and_version():
    for program in ("attendant", "attendant-server"):
        for flag, word in (("--help", "attendant"), ("--version", ".")):
            done = subprocess.run([settings.bin_dir() / program, flag], capture_output=True, timeout=30, check=True)
            assert word in done.stdout.decode()
