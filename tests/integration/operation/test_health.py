# SPDX-License-Identifier: Apache-2.0
"""Health tells the truth while models load, while they serve and while they drain."""

import shutil

import grpc
import pytest
import tritonclient.grpc as triton
from grpc_health.v1 import health_pb2, health_pb2_grpc

from harness import attendant, exposition, settings
from harness.attendant import DEADLINE, ids, pb, request
from harness.server import START_SECONDS, wait_until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
# Models load one after the other: the last of these is still to come when the port answers.
MANY = 6


@pytest.fixture
def health():
    """health(server): a stub."""
    channels = []

    def connect(server):
        channels.append(grpc.insecure_channel(server.grpc))
        return health_pb2_grpc.HealthStub(channels[-1])

    yield connect
    for channel in channels:
        channel.close()


def ask(service=""):
    return health_pb2.HealthCheckRequest(service=service)


def metric(server, name):
    return exposition.Page(server.get("/metrics")[1]).value(name, model="tiny")


@pytest.mark.parametrize("service", ["", "minilm", "tiny"])
def test_check_and_watch_while_serving(server, health, service):
    stub = health(server)
    assert stub.Check(ask(service), timeout=DEADLINE).status == SERVING
    watch = stub.Watch(ask(service), timeout=DEADLINE)
    assert next(watch).status == SERVING
    watch.cancel()


def test_unknown_service(server, health):
    stub = health(server)
    with pytest.raises(grpc.RpcError) as error:
        stub.Check(ask("nobody"), timeout=DEADLINE)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    watch = stub.Watch(ask("nobody"), timeout=DEADLINE)
    assert next(watch).status == SERVICE_UNKNOWN
    watch.cancel()


def test_port_answers_while_models_load(start_server, health):
    names = [f"m{index}" for index in range(MANY)]
    server = start_server(dict.fromkeys(names, settings.model_dir()))
    stub, last = health(server), names[-1]
    watch = stub.Watch(ask(last), timeout=START_SECONDS)
    assert next(watch).status == NOT_SERVING
    assert stub.Check(ask(), timeout=DEADLINE).status == NOT_SERVING
    code, reason = server.get("/readyz")
    assert (code, server.get("/healthz")[0]) == (503, 200) and "m" in reason
    with attendant.Client(server.grpc) as client:
        assert client.models()[last].state == pb.MODEL_STATE_LOADING
        assert client.error(request(last, [ids([101, 102])]))[0] == grpc.StatusCode.UNAVAILABLE
        assert next(watch).status == SERVING
        server.wait_ready()
        assert stub.Check(ask(), timeout=DEADLINE).status == SERVING
        assert {info.state for info in client.models().values()} == {pb.MODEL_STATE_READY}
    watch.cancel()


def test_a_repository_without_a_model_makes_no_polling_server_ready(start_server, health, tmp_path):
    """As an empty volume, one with models a folder too deep, and one that is unmounted while the server runs."""
    repository = tmp_path / "repository"
    shutil.copytree(settings.TINY_MODEL, repository / "deep/models/tiny")
    server = start_server({}, f"--model_repository={repository}", "--model_control=poll", "--repository_poll_s=1",
                          "--dtype=f32")
    stub = health(server)
    assert server.get("/readyz") == (503, "not ready: no model is there yet\n")
    assert stub.Check(ask(), timeout=DEADLINE).status == NOT_SERVING
    assert f"the model repository {repository} has no model yet" in server.log()
    watch = stub.Watch(ask(), timeout=DEADLINE)
    assert next(watch).status == NOT_SERVING
    (repository / "deep/models/tiny").rename(repository / "tiny")
    assert next(watch).status == SERVING
    (repository / "tiny").rename(tmp_path / "elsewhere")
    assert next(watch).status == NOT_SERVING
    assert server.get("/readyz")[0] == 503
    watch.cancel()


def test_an_idle_model_that_cannot_be_loaded_again_is_not_ready(start_server, health, tmp_path):
    """Until the server has loaded it, which it tries by itself: a load balancer would send no request."""
    folder = tmp_path / "tiny"
    shutil.copytree(settings.TINY_MODEL, folder)
    server = start_server({"tiny": folder}, "--unload_idle_s=1").wait_ready()
    watches = [health(server).Watch(ask(service), timeout=DEADLINE) for service in ("", "tiny")]
    assert [next(watch).status for watch in watches] == [SERVING, SERVING]
    config = (folder / "config.json").read_text()
    with attendant.Client(server.grpc) as client, triton.InferenceServerClient(server.grpc) as kserve:
        wait_until("idleness", 30, lambda: client.models()["tiny"].state == pb.MODEL_STATE_IDLE)
        assert kserve.is_model_ready("tiny.ids")
        (folder / "config.json").write_text("{")
        code, details = client.error(request("tiny", [ids([5, 6])], pooled=pb.PooledOutput()))
        assert code == grpc.StatusCode.UNAVAILABLE and "config.json" in details
        assert [next(watch).status for watch in watches] == [NOT_SERVING, NOT_SERVING]
        code, reason = server.get("/readyz")
        assert code == 503 and "config.json" in reason
        assert (kserve.is_server_ready(), kserve.is_model_ready("tiny.ids")) == (False, False)
        assert client.models()["tiny"].state == pb.MODEL_STATE_FAILED
        wait_until("the metric", 30, lambda: metric(server, "attendant_model_failed") == 1)
        assert "attendant_model_loaded_info{" not in server.get("/metrics")[1]
        (folder / "config.json").write_text(config)
        assert [next(watch).status for watch in watches] == [SERVING, SERVING]
        assert server.get("/readyz")[0] == 200 and kserve.is_model_ready("tiny.ids")
        wait_until("the metric", 30, lambda: metric(server, "attendant_model_failed") == 0)
        client.encode(request("tiny", [ids([5, 6])], pooled=pb.PooledOutput()))
    for watch in watches:
        watch.cancel()


def test_draining_is_told_before_the_end(start_server, health):
    server = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    stub = health(server)
    watches = [stub.Watch(ask(service), timeout=DEADLINE) for service in ("", "tiny")]
    assert [next(watch).status for watch in watches] == [SERVING, SERVING]
    server.terminate()
    assert [next(watch).status for watch in watches] == [NOT_SERVING, NOT_SERVING]
    assert server.wait() == 0


def test_a_watcher_does_not_hold_up_the_end(start_server, health):
    server = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    watch = health(server).Watch(ask())
    assert next(watch).status == SERVING
    server.terminate()
    assert next(watch).status == NOT_SERVING
    wait_until("the end of the watch", 60, watch.done)
    assert server.wait() == 0
