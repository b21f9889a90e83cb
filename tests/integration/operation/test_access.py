# SPDX-License-Identifier: Apache-2.0
"""Who may call, what the access log says of it, and the ids that a request carries."""

import json
import re
import subprocess
import threading

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from grpc_health.v1 import health_pb2, health_pb2_grpc

from harness import exposition, settings
from harness.attendant import DEADLINE, Client, ids, pb, request, stubs
from harness.server import serving, wait_until

INFER_KEY = "infer-key-0123456789"
READ_KEY = "read-key-0123456789"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
SECRET_TEXT = "a text that no log may hold"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def guarded(folder, tmp_path_factory):
    """A server with keys and an access log."""
    write_keys(folder, f"# keys of the test\n{INFER_KEY} search infer\n{READ_KEY} viewer read\n")
    with serving(tmp_path_factory.mktemp("server"), {"tiny": settings.TINY_MODEL, "minilm": settings.model_dir()},
                 "--dtype=f32", f"--api_keys={folder / 'keys'}", f"--access_log={folder / 'access.log'}",
                 "--tls_reload_s=1", "--connections_page=on") as running:
        yield running


def write_keys(folder, text):
    (folder / "next").write_text(text)
    (folder / "next").rename(folder / "keys")


def bearer(key):
    return (("authorization", f"Bearer {key}"),)


def embed(stub, metadata=(), text="hello"):
    message = request("minilm", [pb.Sequence(text=text)], pooled=pb.PooledOutput())
    return stub.Encode.with_call(message, timeout=DEADLINE, metadata=metadata)


def code_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code()


def lines(folder, **fields):
    """The lines of the access log that have these values; not the last one while it is written."""
    whole, _, _ = (folder / "access.log").read_text().rpartition("\n")
    found = [json.loads(line) for line in whole.splitlines()]
    return [line for line in found if all(line.get(name) == value for name, value in fields.items())]


def refused(server, reason):
    return exposition.Page(server.get("/metrics")[1]).value("attendant_refused_total", reason=reason)


def unary(channel, path):
    return channel.unary_unary(path, request_serializer=Empty.SerializeToString, response_deserializer=bytes)


@pytest.fixture
def stub(guarded):
    with Client(guarded.grpc) as client:
        yield client.stub


def test_a_key_opens_its_groups(guarded, stub):
    before = refused(guarded, "unauthenticated"), refused(guarded, "permission_denied")
    assert code_of(lambda: embed(stub)) == grpc.StatusCode.UNAUTHENTICATED
    assert code_of(lambda: embed(stub, bearer("wrong-key-0123456789"))) == grpc.StatusCode.UNAUTHENTICATED
    assert code_of(lambda: embed(stub, bearer(READ_KEY))) == grpc.StatusCode.PERMISSION_DENIED
    assert embed(stub, bearer(INFER_KEY))[0].sequences[0].tokens > 0
    assert embed(stub, (("x-api-key", INFER_KEY),))[0].sequences[0].tokens > 0
    assert stub.ListModels(pb.ListModelsRequest(), timeout=DEADLINE, metadata=bearer(READ_KEY)).models
    assert code_of(lambda: stub.ListModels(pb.ListModelsRequest(), timeout=DEADLINE)) == (
        grpc.StatusCode.UNAUTHENTICATED)
    stream = stub.EncodeStream(iter([request("tiny", [ids([5])])]), timeout=DEADLINE)
    assert code_of(lambda: list(stream)) == grpc.StatusCode.UNAUTHENTICATED
    assert (refused(guarded, "unauthenticated") - before[0], refused(guarded, "permission_denied") - before[1]) == (4, 1)


def test_every_protocol_asks(guarded):
    paths = {"/inference.GRPCInferenceService/ModelInfer": READ_KEY,
             "/inference.GRPCInferenceService/ServerMetadata": INFER_KEY,
             "/inference.GRPCInferenceService/RepositoryModelLoad": READ_KEY,
             "/attendant.v1.Attention/Attend": READ_KEY}
    with grpc.insecure_channel(guarded.grpc) as channel:
        for path, wrong_key in paths.items():
            call = unary(channel, path)
            assert code_of(lambda: call(Empty(), timeout=DEADLINE)) == grpc.StatusCode.UNAUTHENTICATED, path
            assert code_of(lambda: call(Empty(), timeout=DEADLINE, metadata=bearer(wrong_key))) == (
                grpc.StatusCode.PERMISSION_DENIED), path
        reflection = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                           request_serializer=Empty.SerializeToString)
        assert code_of(lambda: list(reflection(iter([Empty()]), timeout=DEADLINE))) == (
            grpc.StatusCode.UNAUTHENTICATED)


def test_health_and_http_are_open(guarded):
    with grpc.insecure_channel(guarded.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE).status == 1
        watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE)
        assert next(watch).status == 1
        watch.cancel()
        unary(channel, "/inference.GRPCInferenceService/ServerLive")(Empty(), timeout=DEADLINE)
    for path in ("/metrics", "/healthz", "/readyz"):
        assert guarded.get(path)[0] == 200


def test_the_command_sends_a_key(guarded, folder):
    (folder / "client_key").write_text(INFER_KEY + "\n")
    command = [settings.bin_dir() / "attendant", "encode", f"--server={guarded.grpc}", "--model=tiny", "--ids=5,6,7"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 1
    command += [f"--api_key_file={folder / 'client_key'}", f"--trace={'1' * 32}"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    line = wait_until("the line", 30, lambda: lines(folder, trace_id="1" * 32))[0]
    assert re.fullmatch("[0-9a-f]{16}", line["request_id"])


def test_a_key_for_infer_alone_loads_over_http(guarded, folder):
    (folder / "infer_key").write_text(INFER_KEY)
    command = [settings.bin_dir() / "attendant", "load", "--protocol=openai", f"--server={guarded.http}", "--model=minilm",
               "--requests=3", "--warmup=0"]
    assert b"UNAUTHENTICATED" in subprocess.run(command, capture_output=True, timeout=60, check=False).stderr
    subprocess.run([*command, f"--api_key_file={folder / 'infer_key'}"], timeout=60, check=True)


def test_ids_go_in_and_out(stub, folder):
    metadata = (*bearer(INFER_KEY), ("x-request-id", "r-1"), ("traceparent", PARENT), ("tracestate", "a=1"))
    returned = dict(embed(stub, metadata, SECRET_TEXT)[1].initial_metadata())
    assert returned["x-request-id"] == "r-1"
    assert returned["tracestate"] == "a=1"
    assert re.fullmatch(f"00-{TRACE}-[0-9a-f]{{16}}-01", returned["traceparent"])
    assert returned["traceparent"] != PARENT
    line = wait_until("the line", 30, lambda: lines(folder, request_id="r-1"))[0]
    assert returned["traceparent"] == f"00-{line['trace_id']}-{line['span_id']}-01"
    assert line["key"] == "search" and line["method"] == "attendant.v1.Encoder/Encode"
    assert line["model"] == "minilm" and line["code"] == "OK" and line["peer"].startswith("ipv4:127.0.0.1:")
    assert line["sequences"] == 1 and line["tokens"] > 5 and line["bytes_in"] > len(SECRET_TEXT)
    assert line["bytes_out"] > 384 * 4
    assert line["ms"]["total"] >= line["ms"]["compute"] > 0
    text = (folder / "access.log").read_text()
    assert SECRET_TEXT not in text and INFER_KEY not in text


def test_http_asks_for_keys_and_logs(guarded, folder):
    body = json.dumps({"model": "minilm", "input": SECRET_TEXT})
    headers = {"Authorization": f"Bearer {INFER_KEY}", "X-Request-Id": "r-http"}
    assert guarded.post("/v1/embeddings", body, headers)[0] == 200
    line = wait_until("the line", 30, lambda: lines(folder, request_id="r-http"))[0]
    assert line["key"] == "search" and line["method"] == "POST /v1/embeddings" and line["model"] == "minilm"
    assert line["code"] == "OK" and line["tokens"] > 5 and line["bytes_in"] == len(body) and line["bytes_out"] > 384
    assert line["peer"].startswith("ipv4:127.0.0.1:")
    code, answer = guarded.post("/v1/embeddings", body, {"X-Request-Id": "r-no-key"})
    assert code == 401 and json.loads(answer)["error"]["code"] == "invalid_api_key"
    assert guarded.post("/v1/embeddings", body, {"X-Api-Key": READ_KEY})[0] == 403
    assert guarded.get("/v1/models")[0] == 401 and guarded.get("/v2/health/ready")[0] == 200
    wait_until("the line", 30, lambda: lines(folder, request_id="r-no-key", code="UNAUTHENTICATED"))
    text = (folder / "access.log").read_text()
    assert SECRET_TEXT not in text and INFER_KEY not in text


def test_a_call_without_an_id_gets_one(stub, folder):
    first, second = (dict(embed(stub, bearer(INFER_KEY))[1].initial_metadata())["x-request-id"] for _ in range(2))
    assert re.fullmatch("[0-9a-f]{32}", first) and first != second
    wait_until("the line", 30, lambda: lines(folder, request_id=first))


def test_refused_calls_have_ids_and_lines(stub, folder):
    with pytest.raises(grpc.RpcError) as error:
        embed(stub, (("x-request-id", "r-refused"), ("traceparent", PARENT)))
    returned = dict(error.value.trailing_metadata())
    assert returned["x-request-id"] == "r-refused" and TRACE in returned["traceparent"]
    assert not error.value.initial_metadata(), "gRPC retries no call whose answer has begun"
    line = wait_until("the line", 30, lambda: lines(folder, request_id="r-refused"))[0]
    assert line["code"] == "UNAUTHENTICATED" and "key" not in line


@pytest.mark.parametrize("path", ["/attendant.v1.Encoder/Encode", "/tei.v1.Rerank/RerankStream"])
@pytest.mark.parametrize("end", ["CANCELLED", "DEADLINE_EXCEEDED"])
def test_a_client_that_leaves_before_its_message_is_not_malformed(guarded, folder, path, end):
    before, name, left = refused(guarded, "message"), f"r-{end}-{path}", threading.Event()
    with grpc.insecure_channel(guarded.grpc) as channel:
        live = unary(channel, "/inference.GRPCInferenceService/ServerLive")
        live(Empty(), timeout=DEADLINE)  # the call's time is not for connecting
        for _ in range(100):
            call = channel.stream_unary(path, request_serializer=Empty.SerializeToString).future(
                iter(left.wait, True), timeout=2 if end == "DEADLINE_EXCEEDED" else DEADLINE,
                metadata=(*bearer(INFER_KEY), ("x-request-id", name)))
            live(Empty(), timeout=DEADLINE)  # the call has reached the server before
            if not call.done():  # otherwise its time was over before it was known to have reached the server
                break
        else:
            pytest.fail(f"each call ended at once, the last one with {call.code()}: {call.details()}")
        if end == "CANCELLED":
            call.cancel()
        wait_until("the end", 30, call.done)
        line = wait_until("the line", 30, lambda: lines(folder, request_id=name))[0]
        left.set()
    assert line["code"] in (end, "CANCELLED") and refused(guarded, "message") == before


def test_every_request_of_a_stream_has_a_line(stub, folder):
    messages = [request("tiny", [ids([5] * length)], pooled=pb.PooledOutput()) for length in (1, 2, 97)]
    for number, message in enumerate(messages):
        message.id = f"m{number}"
    answers = stub.EncodeStream(iter(messages), timeout=DEADLINE,
                                metadata=(*bearer(INFER_KEY), ("x-request-id", "r-stream")))
    assert len(list(answers)) == 3
    found = wait_until("three lines", 30, lambda: len(lines(folder, request_id="r-stream")) == 3 and
                       lines(folder, request_id="r-stream"))
    assert {line["id"]: line["tokens"] for line in found if line["code"] == "OK"} == {"m0": 1, "m1": 2}


def test_the_page_of_connections(guarded, stub, folder):
    embed(stub, (*bearer(INFER_KEY), ("x-request-id", "r-page")))
    code_of(lambda: embed(stub))
    peer = wait_until("the line", 30, lambda: lines(folder, request_id="r-page"))[0]["peer"]
    assert peer.startswith("ipv4:")

    def mine():
        code, text = guarded.get("/connections")
        assert code == 200
        page = json.loads(text)
        assert page["active_connections"] >= 1
        return [entry for entry in page["connections"] if entry["peer"] == peer and entry["refused"] >= 1]
    entry = wait_until("the refused call", 30, mine)[0]
    assert entry["requests"] >= 1 and entry["bytes_in"] > 0 and entry["bytes_out"] > 384 * 4


def test_the_page_of_connections_can_be_off(start_server, tmp_path):
    (tmp_path / "keys").write_text(f"{INFER_KEY} search infer\n")
    for flag in ("--connections_page=off", "--http_listen=0.0.0.0:0", f"--api_keys={tmp_path / 'keys'}"):
        server = start_server({"tiny": settings.TINY_MODEL}, flag)
        assert server.get("/connections")[0] == 404
        assert server.get("/healthz")[0] == 200


def test_a_changed_file_of_keys(guarded, stub, folder):
    good = (folder / "keys").read_text()
    write_keys(folder, good + "broken\n")
    wait_until("the error", 30, lambda: "line 4: there are 1 words" in guarded.log())
    embed(stub, bearer(INFER_KEY))
    write_keys(folder, good.replace(INFER_KEY, "another-key-0123456789"))
    wait_until("the new key", 30, lambda: "its keys count from now on" in guarded.log())
    assert code_of(lambda: embed(stub, bearer(INFER_KEY))) == grpc.StatusCode.UNAUTHENTICATED
    embed(stub, bearer("another-key-0123456789"))
    write_keys(folder, good)
    wait_until("the old key", 30, lambda: guarded.log().count("its keys count from now on") == 2)


def test_a_broken_file_at_the_start(tmp_path):
    (tmp_path / "keys").write_text(f"{INFER_KEY} search infer\n{READ_KEY} viewer write\n")
    command = [settings.bin_dir() / "attendant-server", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
               f"--model=tiny={settings.TINY_MODEL}", f"--api_keys={tmp_path / 'keys'}"]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert ended.returncode == 1
    assert "--api_keys: " in ended.stderr and "keys: line 2: the third word lists the groups" in ended.stderr
    assert READ_KEY not in ended.stderr


def test_a_closed_standard_error_leaves_the_access_log_to_its_lines(start_server, tmp_path):
    log = tmp_path / "access.log"
    server = start_server({"tiny": settings.TINY_MODEL}, f"--access_log={log}",
                          prefix=["sh", "-c", 'exec "$@" 2>&-', "sh"]).wait_ready()
    server.post("/embed", json.dumps({"inputs": "hello"}), {"X-Model": "tiny"})
    server.stop()
    assert len([json.loads(line) for line in log.read_text().splitlines()]) == 1


def test_keys_in_plaintext_are_warned_of(start_server, tmp_path):
    (tmp_path / "keys").write_text(f"{INFER_KEY} search infer\n")
    for flag in ("--listen=0.0.0.0:0", "--http_listen=0.0.0.0:0"):
        server = start_server({"tiny": settings.TINY_MODEL}, flag, f"--api_keys={tmp_path / 'keys'}")
        warning, = (line for line in server.log().splitlines() if "is not encrypted, API keys included" in line)
        assert flag.replace("=", " ") in warning
