# SPDX-License-Identifier: Apache-2.0
"""attendant load against a real server: its files, read by the tools that they are for, and its verdicts."""

import json
import math
import signal
import socket
import subprocess

import pytest
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram

from harness import exposition, settings
from harness.server import serving, wait_until

OK, SERVER_ERROR, USAGE, NO_ANSWER, _, THRESHOLD, NO_VERDICT = range(7)
HIGHEST_NS = (1 << 48) - 1


def call(command, *arguments):
    return subprocess.run([settings.bin_dir() / "attendant", command, *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, check=False)


def attendant(command, *arguments, codes=(OK,)):
    done = call(command, *arguments)
    assert done.returncode in codes, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def load(server):
    def run(*arguments, codes=(OK,)):
        return attendant("load", f"--server={server.grpc}", "--model=minilm", "--warmup=0", *arguments, codes=codes)
    return run


@pytest.fixture(scope="module")
def written(load, tmp_path_factory):
    """A load's report, and its files by ending."""
    files = {ending: tmp_path_factory.mktemp("load") / f"out.{ending}" for ending in ("hlog", "jsonl", "html")}
    report = json.loads(load("--rate=40", "--duration=6s", "--lengths=fixed:8", "--json",
                             *(f"--{ending}={path}" for ending, path in files.items())))
    return report, files


def test_hdrhistogram_reads_the_log(written):
    report, files = written
    response, tags = HdrHistogram(1, HIGHEST_NS, 3), {}
    reader = HistogramLogReader(str(files["hlog"]), HdrHistogram(1, HIGHEST_NS, 3))
    while (histogram := reader.get_next_interval_histogram()) is not None:
        if histogram.get_tag():
            tags[histogram.get_tag()] = histogram
        else:
            response.add(histogram)
    assert response.get_total_count() == tags["service"].get_total_count() == report["requests"]["ok"]
    for found, times in ((response, report["latency_s"]), (tags["service"], report["service_s"])):
        for percent in (50, 90, 99):
            # The library rounds to the nearest rank, attendant load up.
            count = found.get_total_count()
            rank = math.ceil(percent / 100 * count)
            assert found.get_value_at_percentile(100 * rank / count) / 1e9 == pytest.approx(times[f"p{percent}"], rel=2e-3)


def test_each_request_has_its_line(written):
    report, files = written
    calls = [json.loads(line) for line in files["jsonl"].read_text().splitlines()]
    assert len(calls) == report["requests"]["ok"] + report["requests"]["failed"]
    latencies = sorted(call["metrics"]["request_latency"]["value"] / 1e3 for call in calls)
    assert latencies[(len(latencies) - 1) // 2] == pytest.approx(report["service_s"]["p50"], rel=2e-3)
    for call in calls:
        assert call["metadata"]["request_end_ns"] > call["metadata"]["request_start_ns"]
        assert call["metrics"]["response_time"]["value"] >= call["metrics"]["request_latency"]["value"]
        assert call["metrics"]["input_sequence_length"] == {"value": 8, "unit": "tokens"}


def test_the_page_stands_alone(written):
    _, files = written
    page = files["html"].read_text(encoding="utf-8")
    data = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert json.loads(data)["runs"][0]["model"] == "minilm"
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_compare_tells_a_slower_load(load, tmp_path):
    """The slower load is the other one with a tenth of its requests: two loads of a busy machine may be alike."""
    fast, slow, unlike = (tmp_path / f"{name}.json" for name in ("fast", "slow", "unlike"))
    report = json.loads(load("--concurrency=2", f"--duration={6 * settings.PATIENCE}s", "--lengths=fixed:8", "--json"))
    fast.write_text(json.dumps(report))
    report["requests_per_s"] /= 10
    report["batches"]["requests_per_s"] = [rate / 10 for rate in report["batches"]["requests_per_s"]]
    slow.write_text(json.dumps(report))
    compared = json.loads(attendant("compare", "--json", fast, slow, codes=(OK, NO_VERDICT)))
    assert compared["requests_per_s"]["change"] == "worse" and compared["p50"]["change"] == "unclear"
    attendant("compare", "--fail_if_worse=5", fast, slow, codes=(THRESHOLD, NO_VERDICT))
    unlike.write_text(json.dumps(report | {"payload": "1 sequence per request, random ids, lengths fixed:64"}))
    attendant("compare", "--fail_if_worse=5", fast, unlike, codes=(NO_VERDICT,))


@pytest.mark.parametrize("failure, verdict", [("error_rate>0", OK), ("p50>1ns", THRESHOLD)])
def test_the_exit_code_is_the_verdict(server, failure, verdict):
    """A busy machine may hold up the load generator for a while: then it gives none."""
    for _ in range(20):
        done = call("load", f"--server={server.grpc}", "--model=minilm", "--warmup=0", "--requests=20",
                    f"--fail_if={failure}")
        if done.returncode != NO_VERDICT:
            break
    assert done.returncode == verdict, done.stderr


@pytest.mark.parametrize("loop", ["--concurrency=8", "--rate=200"])
@pytest.mark.parametrize("protocol, model", [("attendant", "minilm"), ("kserve", "minilm.ids"), ("tei", "minilm")])
def test_streams(load, protocol, model, loop):
    report = json.loads(load(f"--protocol={protocol}", f"--model={model}", "--streaming", "--connections=2", loop,
                             "--requests=100", "--lengths=fixed:16", "--json"))
    assert report["requests"] == {"ok": 100, "failed": 0, "cut_off": 0, "not_sent": 0}
    assert report["protocol"].endswith(", streaming")
    assert report["tokens_per_s"] >= 16 * report["requests_per_s"] * 0.999


def answered(server):
    return exposition.Page(server.get("/metrics")[1]).value("attendant_requests_total", code="OK")


def test_a_stream_ends_with_its_server(start_server):
    """The load outlives the server: what was outstanding are errors, and the loop goes on."""
    server = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    with subprocess.Popen([settings.bin_dir() / "attendant", "load", f"--server={server.grpc}", "--model=tiny", "--streaming",
                           "--live", "--json", "--warmup=0", "--duration=2m", "--lengths=fixed:8"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as load:
        wait_until("answers", 60, lambda: answered(server) > 0)
        server.stop()
        assert any(line.startswith("errors ") for line in load.stderr), "the live view shows none"
        load.send_signal(signal.SIGINT)
        report = json.loads(load.communicate(timeout=120)[0])
    assert load.returncode == OK
    assert report["requests"]["ok"] > 0 and report["requests"]["failed"] > 0
    assert set(report["errors"]) == {"UNAVAILABLE"}


def test_openai_has_no_streams(load, server):
    load("--protocol=openai", f"--server={server.http}", "--streaming", codes=(USAGE,))


@pytest.mark.parametrize("payload", ["ids", "texts"])
def test_openai_over_http(load, server, tmp_path, payload):
    texts = tmp_path / "texts.txt"
    texts.write_text("a text\nanother, longer text\n", encoding="utf-8")
    flags = {"ids": "--lengths=fixed:16", "texts": f"--texts={texts}"}
    report = json.loads(load("--protocol=openai", f"--server={server.http}", "--requests=40", "--concurrency=4",
                             "--batch=2", "--json", flags[payload]))
    assert report["requests"] == {"ok": 40, "failed": 0, "cut_off": 0, "not_sent": 0}
    assert report["sequences_per_s"] == pytest.approx(2 * report["requests_per_s"])
    assert report["tokens_per_s"] > report["sequences_per_s"]


@pytest.mark.parametrize("loop", ["--concurrency=4", "--rate=200"])
@pytest.mark.parametrize("tensors", ["binary", "json"])
@pytest.mark.parametrize("model", ["minilm", "minilm.ids"])
def test_kserve_over_http(load, server, model, tensors, loop):
    report = json.loads(load("--protocol=kserve_http", f"--server={server.http}", f"--model={model}", f"--tensors={tensors}",
                             loop, "--requests=40", "--batch=2", "--lengths=fixed:16", "--json"))
    assert report["requests"] == {"ok": 40, "failed": 0, "cut_off": 0, "not_sent": 0}
    assert report["protocol"] == "KServe v2 over HTTP"
    assert report["sequences_per_s"] == pytest.approx(2 * report["requests_per_s"])
    if model == "minilm.ids":
        assert report["tokens_per_s"] == pytest.approx(32 * report["requests_per_s"])


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    folder = settings.ROOT / "tests/golden/classifier/bert_reranker"
    with serving(tmp_path_factory.mktemp("server"), {"reranker": folder}) as running:
        yield running


@pytest.mark.parametrize("protocol, tells_tokens", [("tei_http", False), ("cohere", True)])
def test_embeddings_over_http(load, server, protocol, tells_tokens):
    report = json.loads(load(f"--protocol={protocol}", f"--server={server.http}", "--requests=40", "--concurrency=4",
                             "--batch=3", "--lengths=fixed:8", "--json"))
    assert report["requests"] == {"ok": 40, "failed": 0, "cut_off": 0, "not_sent": 0}
    assert report["sequences_per_s"] == pytest.approx(3 * report["requests_per_s"])
    if tells_tokens:
        assert report["tokens_per_s"] >= 8 * report["sequences_per_s"] * 0.999


@pytest.mark.parametrize("protocol, tells_tokens", [("tei_rerank", False), ("cohere_rerank", True)])
def test_reranking_over_http(load, reranker, protocol, tells_tokens):
    report = json.loads(load(f"--protocol={protocol}", f"--server={reranker.http}", "--model=reranker", "--requests=40",
                             "--concurrency=4", "--batch=3", "--lengths=fixed:4", "--json"))
    assert report["requests"] == {"ok": 40, "failed": 0, "cut_off": 0, "not_sent": 0}
    assert report["sequences_per_s"] == pytest.approx(3 * report["requests_per_s"])
    if tells_tokens:
        assert report["tokens_per_s"] > report["sequences_per_s"]


@pytest.mark.parametrize("protocol", ["openai", "kserve_http", "tei_http", "cohere"])
def test_errors_over_http_have_their_exit_codes(load, server, protocol):
    load(f"--protocol={protocol}", f"--server={server.http}", "--model=nobody", codes=(SERVER_ERROR,))
    load(f"--protocol={protocol}", "--server=nonsense", codes=(USAGE,))
    load(f"--protocol={protocol}", f"--server={server.http}", "--tls", codes=(USAGE,))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        load(f"--protocol={protocol}", f"--server=127.0.0.1:{taken.getsockname()[1]}", codes=(NO_ANSWER,))


def test_an_embedding_model_reranks_nothing(load, server):
    load("--protocol=tei_rerank", f"--server={server.http}", codes=(SERVER_ERROR,))


@pytest.mark.parametrize("protocol", ["attendant", "kserve", "kserve_http"])
def test_the_null_server_counts_what_it_answers(load, protocol):
    """The other end of tests/bench/load. Over HTTP, one more request finds out that the server takes it."""
    with subprocess.Popen([settings.bin_dir() / "null_server"], stdout=subprocess.PIPE, text=True) as server:
        ports = {"grpc": server.stdout.readline().strip(), "http": server.stdout.readline().strip()}
        port = "http" if protocol.endswith("_http") else "grpc"
        report = json.loads(load(f"--protocol={protocol}", f"--server={ports[port]}", "--model=null", "--requests=100",
                                 "--json"))
        server.terminate()
        answered = int(server.communicate(timeout=60)[0])
    assert report["requests"] == {"ok": 100, "failed": 0, "cut_off": 0, "not_sent": 0}
    assert answered == 100 + (port == "http")


def test_an_access_log_is_replayed(start_server, tmp_path):
    log = tmp_path / "access.log"
    server = start_server({"tiny": settings.TINY_MODEL}, f"--access_log={log}").wait_ready()
    for ids in ("1,2,3", "4,5,6,7"):
        attendant("encode", f"--server={server.grpc}", f"--ids={ids}")
    server.stop()  # writes what is left of the log
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(line.get("tokens", 0) for line in lines) == 7
    again = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    report = json.loads(attendant("load", f"--server={again.grpc}", f"--replay={log}", "--warmup=0", "--json"))
    assert report["requests"]["ok"] == 2
