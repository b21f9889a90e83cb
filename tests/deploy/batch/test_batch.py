# SPDX-License-Identifier: Apache-2.0
"""deploy/batch: each row exactly once and with the same bits, though a worker, a server or the whole job is killed."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gate import Gate
from harness import settings
from harness.server import wait_until

PROGRAM = settings.ROOT / "deploy/batch/embed_corpus.py"
ROWS, ROWS_PER_PART = 900, 15
SECONDS = 180
FLAGS = ("--dtype=f32", "--threads=1")
WORDS = "the cat sat on a mat and looked at birds that flew over old houses near our river".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The same rows as JSONL and as Parquet, in small groups of rows; a part may begin inside a group."""
    folder = tmp_path_factory.mktemp("corpus")
    rows = [{"id": f"d{row}", "text": " ".join(WORDS[(row * k) % len(WORDS)] for k in range(1, 3 + row % 12)), "n": row}
            for row in range(ROWS)]
    jsonl = folder / "corpus.jsonl"
    jsonl.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    parquet = folder / "corpus.parquet"
    pq.write_table(pa.Table.from_pylist(rows), parquet, row_group_size=70)
    return {"jsonl": jsonl, "parquet": parquet}


@pytest.fixture(scope="module")
def server(start_shared_server):
    """A list with one server."""
    return [start_shared_server({"minilm": settings.model_dir()}, *FLAGS).wait_ready()]


def command(inputs, output, servers, *arguments):
    return [sys.executable, PROGRAM, inputs, f"--output={output}", f"--servers={','.join(s.grpc for s in servers)}",
            "--id=id", f"--rows_per_part={ROWS_PER_PART}", "--rows_per_request=5", *arguments]


def run(*arguments):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=SECONDS)


@contextlib.contextmanager
def started(*arguments):
    """A job in a process group of its own, which ends with the context."""
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=SECONDS)


def parts(output):
    return sorted(output.glob("part-*"))


@contextlib.contextmanager
def gates(servers, output, count):
    """One before each server, which closes when the job has made so many parts: it does not end before the gates open."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Gate(server.grpc, lambda: len(parts(output)) >= count)) for server in servers]


def wait_for_parts(output, count):
    wait_until(f"{count} parts", SECONDS, lambda: len(parts(output)) >= count)


def table(output):
    """All rows in the order of the parts: row, id, bits of the embedding."""
    read = pa.concat_tables(pq.read_table(path) for path in parts(output))
    assert read.column("row").to_pylist() == list(range(ROWS)), "each row once, in order"
    return read


@pytest.fixture(scope="module")
def expected(corpus, server, tmp_path_factory):
    """What one process makes of it with one server."""
    output = tmp_path_factory.mktemp("expected") / "out"
    done = run(corpus["jsonl"], output, server, "--workers=0")
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return table(output)


def test_killed_worker_and_killed_server(corpus, server, start_server, expected, tmp_path):
    output = tmp_path / "out"
    servers = [start_server({"minilm": settings.model_dir()}, *FLAGS).wait_ready(), *server]
    with (gates(servers, output, 5) as ways,
          started(corpus["parquet"], output, ways, "--workers=2", "--threads=1") as job):
        wait_for_parts(output, 5)
        os.killpg(job.pid, signal.SIGSTOP)  # it does not go on while its workers are looked for
        assert len(parts(output)) < ROWS / ROWS_PER_PART, "the job was over before anything was killed"
        workers = [child for child in psutil.Process(job.pid).children(recursive=True)
                   if "spawn_main" in " ".join(child.cmdline()) and not child.children()]
        assert len(workers) >= 2, workers
        workers[0].kill()
        servers[0].kill()
        os.killpg(job.pid, signal.SIGCONT)
        for way in ways:
            way.open()
        out, err = job.communicate(timeout=SECONDS)
        assert job.returncode == 0, err
        print(out)
    assert re.search(rf"^{ROWS} texts in [\d.]+ s, \d+ texts/s", out) and "100%" in err
    assert json.loads((output / "_SUCCESS").read_text()) == {"rows": ROWS, "parts": ROWS // ROWS_PER_PART}
    assert table(output) == expected
    assert not list(output.glob(".part-*"))


def test_goes_on_where_it_was(corpus, server, expected, tmp_path):
    output = tmp_path / "out"
    with gates(server, output, 5) as ways, started(corpus["jsonl"], output, ways, "--workers=1"):
        wait_for_parts(output, 5)
    done = {path: path.stat().st_mtime_ns for path in parts(output)}
    assert 5 <= len(done) < ROWS / ROWS_PER_PART and not (output / "_SUCCESS").exists()
    again = run(corpus["jsonl"], output, server, "--workers=0")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith(f"{ROWS - ROWS_PER_PART * len(done)} texts")
    assert {path: path.stat().st_mtime_ns for path in done} == done, "a part was written twice"
    assert table(output) == expected
    other = run(corpus["parquet"], output, server, "--workers=0")
    assert other.returncode == 2 and "another inputs" in other.stderr


def test_jsonl_out(corpus, server, expected, tmp_path):
    output = tmp_path / "out"
    assert run(corpus["parquet"], output, server, "--workers=0", "--format=jsonl").returncode == 0
    rows = [json.loads(line) for path in parts(output) for line in path.read_text().splitlines()]
    assert rows == expected.to_pylist()


def test_bad_rows(server, tmp_path):
    for line, message in (
            ('{"id": "x"}', "row 1 of the corpus has no text in 'text'"),
            ('{"id": "x", "text": 7}', "row 1 of the corpus has no text in 'text'"),
            (r'{"id": "x", "text": "half a pair: \ud83d"}', "row 1 of the corpus has no text in 'text'"),
            ('{"text": "y"}', "row 1 of the corpus has no text in 'id', as the first row has"),
            ('{"id": 7, "text": "y"}', "row 1 of the corpus has no text in 'id', as the first row has"),
            ("[1]", "row 1 of the corpus is not a JSON object"),
            ("{", "row 1 of the corpus is not JSON")):
        bad = tmp_path / "bad.jsonl"
        bad.write_text('{"id": "a", "text": "b"}\n' + line + "\n")
        done = run(bad, tmp_path / "out", server, "--workers=0")
        assert done.returncode == 2 and f"bad.jsonl: {message}" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        shutil.rmtree(tmp_path / "out")


def test_errors_in_a_worker(corpus, start_server, tmp_path):
    """They end the job with the same exit codes as errors in its own process."""
    servers = [start_server({"minilm": settings.model_dir()}, *FLAGS).wait_ready()]
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "a", "text": "b"}\n{\n')
    done = run(bad, tmp_path / "bad", servers, "--workers=1")
    assert done.returncode == 2 and f"embed_corpus: {bad}: row 1 of the corpus is not JSON" in done.stderr, done.stderr
    with (gates(servers, tmp_path / "out", 2) as (way,),
          started(corpus["jsonl"], tmp_path / "out", [way], "--workers=1", "--give_up_s=1") as job):
        wait_for_parts(tmp_path / "out", 2)
        servers[0].kill()
        way.open()
        _, err = job.communicate(timeout=SECONDS)
    assert job.returncode == 3 and "embed_corpus: no server answers: UNAVAILABLE" in err, err


def test_bad_ids(server, tmp_path):
    """One type in all parts, also where each part alone could be written."""
    number, text = "whole number of 64 bits", "text"
    for ids, row, missing in (([True, True], 0, f"{text} or {number} in 'id'"),
                              ([1, False], 1, f"{number} in 'id', as the first row has"),
                              ([1, "x"], 1, f"{number} in 'id', as the first row has"),
                              (["x", "y", 1], 2, f"{text} in 'id', as the first row has"),
                              ([-2**63, 2**63 - 1, 2**63], 2, f"{number} in 'id', as the first row has")):
        bad = tmp_path / "bad.jsonl"
        bad.write_text("".join(json.dumps({"id": value, "text": "b"}) + "\n" for value in ids))
        done = run(bad, tmp_path / "out", server, "--workers=0", "--rows_per_part=1")
        assert done.returncode == 2 and f"bad.jsonl: row {row} of the corpus has no {missing}" in done.stderr, done.stderr
        assert len(parts(tmp_path / "out")) == row, "the rows before it are written"
        shutil.rmtree(tmp_path / "out")


def test_long_texts(start_server, tmp_path):
    """Each request stays below the limit of a message; a text that does not is an error of the input."""
    servers = [start_server({"minilm": settings.model_dir()}, *FLAGS, "--max_request_bytes=1500000").wait_ready()]
    for words, code in ((100_000, 0), (400_000, 2)):  # texts of 0.5 and 2 MB, five in a request
        long = tmp_path / f"{words}.jsonl"
        long.write_text("".join(json.dumps({"id": row, "text": "word " * words}) + "\n" for row in range(5)))
        done = run(long, tmp_path / str(words), servers, "--workers=0", "--give_up_s=60")
        assert done.returncode == code, done.stderr
    assert "larger than max" in done.stderr and "Traceback" not in done.stderr


def test_a_model_with_versions_that_becomes_idle(start_server, tmp_path):
    """The version that answers is taken, and an idle model is the same one as before."""
    for version in ("1", "2"):
        shutil.copytree(settings.GOLDEN / "tiny_mpnet", tmp_path / "models/tiny" / version)
    servers = [start_server({}, *FLAGS, f"--model_repository={tmp_path}/models", "--max_model_versions=2",
                            "--unload_idle_s=1").wait_ready()]
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"id": 0, "text": "a"}\n')
    assert run(texts, tmp_path / "out", servers, "--workers=0").returncode == 0
    model = json.loads((tmp_path / "out/job.json").read_text())["model"]
    assert model == {"name": "tiny", "version": 2, "dtype": "f32"}
    listed = "/attendant.v1.Encoder/ListModels", "{}", {"Content-Type": "application/json"}
    wait_until("both are idle", SECONDS, lambda: servers[0].post(*listed)[1].count("MODEL_STATE_IDLE") == 2)
    assert run(texts, tmp_path / "out", servers, "--workers=0").returncode == 0


@pytest.mark.parametrize("versions, code", [(2, 0), (1, 2)])
def test_a_version_that_appears_is_not_taken(start_server, tmp_path, versions, code):
    """The job goes on with the version from its start, or ends if that has gone."""
    models = tmp_path / "models/m"
    shutil.copytree(settings.GOLDEN / "tiny_mpnet", models / "1")
    servers = [start_server({}, *FLAGS, f"--model_repository={tmp_path}/models", f"--max_model_versions={versions}",
                            "--model_control=poll", "--repository_poll_s=1").wait_ready()]
    texts = tmp_path / "texts.jsonl"
    texts.write_text(''.join(json.dumps({"id": row, "text": "the cat sat"}) + "\n" for row in range(ROWS)))
    with (gates(servers, tmp_path / "out", 5) as (way,),
          started(texts, tmp_path / "out", [way], "--workers=0", "--rows_per_part=1") as job):
        wait_for_parts(tmp_path / "out", 5)
        os.killpg(job.pid, signal.SIGSTOP)
        assert len(parts(tmp_path / "out")) < ROWS, "the job was over before the version appeared"
        shutil.copytree(settings.GOLDEN / "tiny_roberta", tmp_path / "2")
        (tmp_path / "2").rename(models / "2")
        listed = "/attendant.v1.Encoder/ListModels", "{}", {"Content-Type": "application/json"}

        def states():
            models = json.loads(servers[0].post(*listed)[1])["models"]
            return {model["version"]: model["state"].removeprefix("MODEL_STATE_") for model in models}
        wait_until("the versions", SECONDS, lambda: states() == {1: "READY", 2: "READY"} if versions == 2 else
                   states() == {2: "READY"})
        os.killpg(job.pid, signal.SIGCONT)
        way.open()
        _, err = job.communicate(timeout=SECONDS)
        assert job.returncode == code, err
    if code:
        assert "model 'm' has no version '1', only 2" in err and "Traceback" not in err
    assert len({str(pq.read_table(path).column("embedding").to_pylist()) for path in parts(tmp_path / "out")}) == 1


def test_servers_by_name(corpus, server, expected, tmp_path):
    port = server[0].grpc.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, PROGRAM, corpus["parquet"], f"--output={tmp_path}/out", "--workers=0", "--id=id",
         f"--servers=localhost:{port},127.0.0.1:{port}", f"--rows_per_part={ROWS_PER_PART}", "--rows_per_request=5"],
        capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert table(tmp_path / "out") == expected


def test_tls_a_key_and_prompts(start_server, tmp_path):
    for name in ("server", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                        f"{name}.key", "-out", f"{name}.pem"], cwd=tmp_path, check=True, capture_output=True)
    key = "a-key-of-the-batch-job"
    (tmp_path / "keys").write_text(f"{key} batch infer,read\n")
    (tmp_path / "key").write_text(f"{key}\n")
    servers = [start_server({"m": settings.ROOT / "tests/golden/sentence/prompts"}, *FLAGS, f"--api_keys={tmp_path}/keys",
                            f"--tls_cert={tmp_path}/server.pem", f"--tls_key={tmp_path}/server.key").wait_ready()]
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"id": 0, "text": "a cat"}\n')
    tls, api_key = f"--tls_ca={tmp_path}/server.pem", f"--api_key_file={tmp_path}/key"

    def embedding(folder, *arguments):
        done = run(texts, tmp_path / folder, servers, tls, api_key, *arguments)
        assert done.returncode == 0, done.stderr
        assert key not in done.stderr + (tmp_path / folder / "job.json").read_text()
        return pq.read_table(parts(tmp_path / folder)[0]).column("embedding").to_pylist()
    query = embedding("query", "--workers=1", "--prompt_name=query")
    assert query == embedding("default", "--workers=0"), "the model's default"
    assert query != embedding("none", "--workers=0", "--prompt_name=")
    for arguments, message in (
            ([tls], "UNAUTHENTICATED"), ([tls, f"--api_key_file={tmp_path}/none"], "--api_key_file"),
            ([f"--tls_ca={tmp_path}/other.pem", api_key], "CERTIFICATE_VERIFY_FAILED"),
            ([tls, api_key, "--prompt_name=document"], "another prompt_name")):
        done = run(texts, tmp_path / "query", servers, "--workers=0", *arguments)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr
    done = run(texts, tmp_path / "two", servers * 2, "--workers=0", tls, api_key)
    assert done.returncode == 2 and "must be one name" in done.stderr, done.stderr


def test_bad_usage(corpus, server, tmp_path):
    for arguments, message in ((["--model=none"], "--model must be one of: minilm"), (["--rows_per_part=0"], "positive")):
        done = run(corpus["jsonl"], tmp_path / "out", server, "--workers=0", *arguments)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    nobody = subprocess.run([sys.executable, PROGRAM, corpus["jsonl"], f"--output={tmp_path}/nobody", "--workers=0",
                             "--servers=127.0.0.1:1", "--give_up_s=1"], capture_output=True, text=True, timeout=SECONDS)
    assert nobody.returncode == 3 and "no server answers: UNAVAILABLE" in nobody.stderr
    endless = subprocess.run([sys.executable, PROGRAM, corpus["jsonl"], f"--output={tmp_path}/endless", "--workers=0",
                              "--servers=127.0.0.1:1", "--tls_ca=/dev/zero"], capture_output=True, text=True, timeout=SECONDS)
    assert endless.returncode == 2 and "--tls_ca /dev/zero: it has more than 16777216 bytes" in endless.stderr
