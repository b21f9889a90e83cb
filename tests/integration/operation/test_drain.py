# SPDX-License-Identifier: Apache-2.0
"""SIGTERM under load: what was admitted is answered, what comes later is refused, the exit code is 0."""

import subprocess
import urllib.error

import grpc
import pytest

from harness import attendant, exposition, settings
from harness.attendant import ids, pb, request
from harness.server import wait_until

REQUESTS = 48
SEQUENCES = 8
LEN = 96
TOKENS = REQUESTS * SEQUENCES * LEN
LOAD_SECONDS = 300 * settings.PATIENCE  # of a load that takes five where no other program computes
DELAY_US = 60_000_000


@pytest.fixture
def loaded(start_server):
    """A server with many requests admitted, and these calls. Each fills a batch, except the last, which has one sequence: what
    does not fill the last batch waits there, until the drain."""
    server = start_server({"minilm": settings.model_dir()}, f"--max_queued_tokens={2 * TOKENS}",
                          f"--max_batch_tokens={SEQUENCES * LEN}", f"--max_queue_delay_us={DELAY_US}",
                          f"--drain_timeout_s={LOAD_SECONDS}").wait_ready()
    row = ids([101] + [2000 + i for i in range(LEN - 2)] + [102])
    message, short = (request("minilm", [row] * sequences, pooled=pb.PooledOutput()) for sequences in (SEQUENCES, 1))
    with attendant.Client(server.grpc) as client:
        expected = client.encode(message).pooled.data
        calls = [client.stub.Encode.future(each, timeout=LOAD_SECONDS) for each in [message] * REQUESTS + [short]]
        wait_until("all requests to be admitted", 60, lambda: admitted(server) == 1 + len(calls))
        yield server, client, calls, expected


def admitted(server):
    page = exposition.Page(server.get("/metrics")[1])
    return (page.value("attendant_inflight_requests", model="minilm")
            + page.value("attendant_requests_total", model="minilm"))


def turned(server):
    """Whether /readyz has turned. The port is closed when the drain has ended before anyone asked."""
    try:
        return server.get("/readyz")[0] == 503
    except (urllib.error.URLError, ConnectionError):
        return True


def refuses(client):
    """Whether the model has begun to drain, a moment after /readyz has turned. The same when the drain has ended."""
    try:
        return client.models()["minilm"].state == pb.MODEL_STATE_DRAINING
    except grpc.RpcError as error:
        return error.code() == grpc.StatusCode.UNAVAILABLE


def test_no_admitted_request_is_lost(loaded):
    server, _, calls, expected = loaded
    assert not all(call.done() for call in calls), "the load was over before SIGTERM: this test shows nothing"
    server.terminate()
    *answers, short = [call.result().pooled.data for call in calls]
    assert set(answers) == {expected} and short == expected[:len(expected) // SEQUENCES]
    assert server.wait() == 0


def test_what_comes_after_sigterm_is_refused(loaded):
    server, client, calls, _ = loaded
    server.terminate()
    wait_until("/readyz to turn", 60, lambda: turned(server))
    wait_until("the drain", 60, lambda: refuses(client))
    late = request("minilm", [ids([101, 102])], pooled=pb.PooledOutput())
    code, details = client.error(late)
    assert code == grpc.StatusCode.UNAVAILABLE, details
    assert {call.code() for call in calls} == {grpc.StatusCode.OK}
    assert server.wait() == 0


def test_serves_during_the_drain_delay(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, f"--drain_delay_s={6 * settings.PATIENCE}").wait_ready()
    with attendant.Client(server.grpc) as client:
        server.terminate()
        wait_until("/readyz to turn", 60, lambda: turned(server))
        for _ in range(20):
            client.encode(request("tiny", [ids([5, 6, 7])], pooled=pb.PooledOutput()))
        assert server.process.poll() is None
        assert server.wait() == 0


def test_idle_server_ends_at_once(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    server.terminate()
    assert server.wait() == 0


def test_sigterm_while_loading(start_server):
    server = start_server({f"m{index}": settings.model_dir() for index in range(4)})
    server.terminate()
    assert server.wait() == 0


def test_a_start_that_fails_waits_for_no_load(tmp_path):
    command = [settings.bin_dir() / "attendant-server", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
               f"--model=minilm={settings.model_dir()}", f"--port_file={tmp_path / 'gone' / 'ports'}"]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert ended.returncode == 1
    log = ended.stdout + ended.stderr
    assert "cannot write --port_file" in log
    assert "draining" not in log, "the models were drained, after the load that was in progress"
