# SPDX-License-Identifier: Apache-2.0
"""The spans that a collector of OpenTelemetry gets, and that it never stands in a request's way."""

import json
import secrets
import socket
import ssl
import subprocess
import threading
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton

from harness import exposition, settings
from harness.attendant import DEADLINE, Client, ids, pb, request
from harness.collector import Collector, attributes
from harness.server import serving, wait_until

SERVER, INTERNAL = 2, 1  # Span.kind
PHASES = ["tokenize", "queue", "compute", "serialize"]
CALLER = "00f067aa0ba902b7"
CLOCKS = 50_000_000  # ns between the readings of two clocks, on a machine that is busy


@pytest.fixture(scope="module")
def collector():
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def traced(tmp_path_factory, collector):
    """A server that sends its spans after a tenth of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        patch.setenv("OTEL_SERVICE_NAME", "encoders")
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test%20bed")
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a%3Db")
        with serving(tmp_path_factory.mktemp("server"), {"tiny": settings.TINY_MODEL}, "--dtype=f32",
                     f"--otlp_endpoint={collector.url}") as running:
            yield running


def parent(sampled=True):
    """A new trace id, and the traceparent of a caller in it."""
    trace = secrets.token_hex(16)
    return trace, f"00-{trace}-{CALLER}-{'01' if sampled else '00'}"


def message(length=3):
    return request("tiny", [ids(range(5, 5 + length))], pooled=pb.PooledOutput())


def encode(server, header=None, sent=None):
    """The initial metadata of one Encode call."""
    metadata = () if header is None else (("traceparent", header),)
    with Client(server.grpc) as client:
        call = client.stub.Encode.with_call(sent or message(), timeout=DEADLINE, metadata=metadata)[1]
        return dict(call.initial_metadata())


def named(spans, name):
    found = [span for span in spans if span.name == name]
    assert len(found) == 1, [span.name for span in spans]
    return found[0]


def await_spans(collector, trace, number):
    return wait_until(f"{number} spans", 30,
                      lambda: len(collector.of_trace(trace)) >= number and collector.of_trace(trace))


def spans_total(server, result):
    return exposition.Page(server.get("/metrics")[1]).value("attendant_spans_total", result=result)


def exports_total(server, result):
    return exposition.Page(server.get("/metrics")[1]).value("attendant_span_exports_total", result=result)


def by_encode(server, header):
    encode(server, header)


def by_kserve(server, header):
    tensor = triton.InferInput("input_ids", [1, 3], "INT64")
    tensor.set_data_from_numpy(np.array([[5, 6, 7]], np.int64))
    with triton.InferenceServerClient(server.grpc) as client:
        client.infer("tiny.ids", [tensor], headers={"traceparent": header})


def by_openai(server, header):
    body = json.dumps({"model": "tiny", "input": [5, 6, 7]})
    assert server.post("/v1/embeddings", body, {"traceparent": header})[0] == 200


def by_kserve_http(server, header):
    body = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 3], "data": [5, 6, 7]}]}
    assert server.post("/v2/models/tiny.ids/infer", json.dumps(body), {"traceparent": header})[0] == 200


GRPC = {"rpc.system": "grpc", "rpc.grpc.status_code": 0}
PROTOCOLS = {
    "attendant": (by_encode, "attendant.v1.Encoder/Encode",
                  GRPC | {"rpc.service": "attendant.v1.Encoder", "rpc.method": "Encode"}),
    "kserve": (by_kserve, "inference.GRPCInferenceService/ModelInfer",
               GRPC | {"rpc.service": "inference.GRPCInferenceService", "rpc.method": "ModelInfer"}),
    "openai": (by_openai, "POST /v1/embeddings", {"http.request.method": "POST", "http.route": "/v1/embeddings"}),
    "kserve http": (by_kserve_http, "POST /v2/models/{model}/infer", {"http.request.method": "POST"}),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_request_is_a_child_of_its_caller(traced, collector, protocol):
    call, name, expected = PROTOCOLS[protocol]
    trace, header = parent()
    before = time.time_ns()
    call(traced, header)
    after = time.time_ns()
    spans = await_spans(collector, trace, 5)
    own = named(spans, name)
    assert own.parent_span_id.hex() == CALLER and own.kind == SERVER and own.status.code == 0
    found = attributes(own)
    assert expected.items() <= found.items()
    assert found["attendant.tokens"] == 3 and found["attendant.sequences"] == 1
    assert found["attendant.model"].startswith("tiny") and found["attendant.response_bytes"] > 0
    assert found["client.address"] == "127.0.0.1" and found["client.port"] > 1023
    assert before - CLOCKS <= own.start_time_unix_nano <= own.end_time_unix_nano <= after + CLOCKS
    assert len({span.span_id for span in spans}) == len(spans) == 5
    check_phases(spans, own)
    check_batch(collector, own, spans)


def check_phases(spans, own):
    """One after the other, inside the request's time."""
    phases = [named(spans, phase) for phase in PHASES]
    for phase in phases:
        assert phase.parent_span_id == own.span_id and phase.kind == INTERNAL
        assert own.start_time_unix_nano <= phase.start_time_unix_nano <= phase.end_time_unix_nano
        assert phase.end_time_unix_nano <= own.end_time_unix_nano
    for first, second in zip(phases, phases[1:]):
        assert first.end_time_unix_nano <= second.start_time_unix_nano


def check_batch(collector, own, spans):
    assert len(own.links) == 1
    link = own.links[0]
    batch = wait_until("the batch", 30, lambda: collector.of_trace(link.trace_id.hex()))
    assert len(batch) == 1 and batch[0].span_id == link.span_id and batch[0].name == "batch"
    found = attributes(batch[0])
    assert found["attendant.batch.tokens"] >= 3 and found["attendant.batch.requests"] >= 1
    compute = named(spans, "compute")
    assert abs(batch[0].start_time_unix_nano - compute.start_time_unix_nano) < CLOCKS


def test_the_resource_and_the_headers(traced, collector):
    trace, header = parent()
    encode(traced, header)
    await_spans(collector, trace, 5)
    resource = collector.resources[-1]
    assert resource["service.name"] == "encoders" and resource["deployment.environment"] == "test bed"
    assert resource["service.version"] and resource["telemetry.sdk.language"] == "cpp"
    headers = collector.requests[-1][0]
    assert headers["x-tenant"] == "a=b" and headers["content-encoding"] == "gzip"


def test_the_answer_names_the_span(traced, collector):
    trace, header = parent()
    returned = encode(traced, header)["traceparent"]
    own = named(await_spans(collector, trace, 5), "attendant.v1.Encoder/Encode")
    assert returned == f"00-{trace}-{own.span_id.hex()}-01"


def test_without_a_caller_a_trace_begins(traced, collector):
    _, trace, span, flags = encode(traced)["traceparent"].split("-")
    own = named(await_spans(collector, trace, 5), "attendant.v1.Encoder/Encode")
    assert own.span_id.hex() == span and own.parent_span_id == b"" and flags == "01"


def test_a_caller_that_does_not_sample(traced, collector):
    unsampled, header = parent(sampled=False)
    encode(traced, header)
    sampled, header = parent()
    encode(traced, header)
    await_spans(collector, sampled, 5)
    assert collector.of_trace(unsampled) == []


def test_a_request_that_fails(traced, collector):
    trace, header = parent()
    with Client(traced.grpc) as client, pytest.raises(grpc.RpcError):
        client.stub.Encode(request("nobody", [ids([5])]), timeout=DEADLINE, metadata=(("traceparent", header),))
    own = await_spans(collector, trace, 1)[0]
    found = attributes(own)
    assert found["error.type"] == "NOT_FOUND" and found["rpc.grpc.status_code"] == 5
    assert found["attendant.model"] == "nobody" and own.status.code == 0, "it is the client's fault"


def test_a_stream_and_its_messages(traced, collector):
    trace, header = parent()
    messages = [message(length) for length in (1, 2, 3)]
    for number, sent in enumerate(messages):
        sent.id = f"m{number}"
    with Client(traced.grpc) as client:
        stream = client.stub.EncodeStream(iter(messages), timeout=DEADLINE, metadata=(("traceparent", header),))
        assert len(list(stream)) == 3
    spans = await_spans(collector, trace, 16)
    own = named(spans, "attendant.v1.Encoder/EncodeStream")
    assert own.kind == SERVER and own.parent_span_id.hex() == CALLER
    inside = [span for span in spans if span.name == "message"]
    assert {span.parent_span_id for span in inside} == {own.span_id}
    assert {attributes(span)["attendant.message_id"]: attributes(span)["attendant.tokens"] for span in inside} == (
        {"m0": 1, "m1": 2, "m2": 3})
    assert own.start_time_unix_nano <= min(span.start_time_unix_nano for span in inside) + CLOCKS


def test_probes_have_no_spans(traced, collector):
    with grpc.insecure_channel(traced.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes,
                                    response_deserializer=bytes)
        trace, header = parent()
        check(b"", timeout=DEADLINE, metadata=(("traceparent", header),))
    later, header = parent()
    encode(traced, header)
    await_spans(collector, later, 5)
    assert collector.of_trace(trace) == []


def test_counts_what_it_sends(traced, collector):
    trace, header = parent()
    encode(traced, header)
    await_spans(collector, trace, 5)
    wait_until("the count", 30, lambda: spans_total(traced, "exported") == len(collector.spans))
    assert spans_total(traced, "dropped") == spans_total(traced, "failed") == 0
    assert exports_total(traced, "ok") == len(collector.requests)


def start(start_server, monkeypatch, url, *flags, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return start_server({"tiny": settings.TINY_MODEL}, "--dtype=f32", f"--otlp_endpoint={url}", *flags).wait_ready()


def answered(server, number=200):
    """So many requests are answered."""
    with Client(server.grpc) as client:
        for _ in range(number):
            assert client.encode(message()).pooled.data


def test_requests_of_one_batch_link_to_one_span(start_server, monkeypatch):
    traces = [parent() for _ in range(6)]
    with Collector() as there:
        server = start(start_server, monkeypatch, there.url, "--max_queue_delay_us=500000",
                       OTEL_BSP_SCHEDULE_DELAY="10")
        with Client(server.grpc) as client:
            calls = [client.stub.Encode.future(message(), timeout=DEADLINE, metadata=(("traceparent", header),))
                     for _, header in traces]
            for call in calls:
                call.result()
        own = [named(await_spans(there, trace, 5), "attendant.v1.Encoder/Encode") for trace, _ in traces]
        batches = {span.links[0].span_id: span.links[0].trace_id.hex() for span in own}
        assert len(batches) < len(traces), "no two shared a batch: this test shows nothing"
        for span_id, trace in batches.items():
            told = wait_until("the batch", 30, lambda trace=trace: there.of_trace(trace))
            assert [span.span_id for span in told] == [span_id], "each batch has one span"


def test_a_collector_that_is_not_there(start_server, monkeypatch):
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        server = start(start_server, monkeypatch, f"http://127.0.0.1:{taken.getsockname()[1]}",
                       OTEL_BSP_SCHEDULE_DELAY="10")
        answered(server)
        wait_until("an attempt", 30, lambda: exports_total(server, "failed") >= 2)
        assert server.log().count("spans cannot be sent") == 1, "one line for all attempts"
        server.stop()
    assert "the last spans did not reach the collector" in server.log()


def test_a_collector_that_does_not_answer(start_server, monkeypatch):
    """The queue is full at once: what it cannot hold is dropped, and requests go on."""
    release = threading.Event()

    def wait(_):
        release.wait()
        return 200, {}

    with Collector(answer=wait) as slow:
        server = start(start_server, monkeypatch, slow.url, OTEL_BSP_SCHEDULE_DELAY="1",
                       OTEL_BSP_MAX_QUEUE_SIZE="50")
        answered(server)
        assert spans_total(server, "dropped") > 500 and spans_total(server, "exported") == 0
        begin = time.monotonic()
        server.stop()
        assert time.monotonic() - begin < 20, "the flush has an end"
        release.set()


def test_a_collector_that_asks_for_time(start_server, monkeypatch):
    """The same spans come again, not before the time that it asks for, and none is lost."""
    times = []

    def refuse_first(number):
        times.append(time.monotonic())
        return (503, {"Retry-After": "2"}) if number == 1 else (200, {})

    with Collector(answer=refuse_first) as busy:
        server = start(start_server, monkeypatch, busy.url, OTEL_BSP_SCHEDULE_DELAY="10")
        trace, header = parent()
        encode(server, header)
        spans = await_spans(busy, trace, 5)
        assert times[1] - times[0] >= 1.9
        first = [span.span_id for span in busy.requests[0][1].resource_spans[0].scope_spans[0].spans]
        assert {span.span_id for span in spans} <= set(first)
        wait_until("the count", 30, lambda: spans_total(server, "exported") == len(first))
        assert spans_total(server, "failed") == 0 and exports_total(server, "failed") == 1
        assert "the collector takes spans again" in server.log()


def test_the_end_sends_what_waits(start_server, monkeypatch):
    with Collector() as last:
        server = start(start_server, monkeypatch, last.url, OTEL_BSP_SCHEDULE_DELAY="600000")
        traces = [parent() for _ in range(10)]
        for _, header in traces:
            encode(server, header)
        assert last.spans == []
        server.stop()
        assert all(len(last.of_trace(trace)) == 5 for trace, _ in traces)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A folder with cert.pem, which signs itself, its key, and another certificate."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("cert", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", f"{name}.key", "-out", f"{name}.pem"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("trusted", [True, False])
def test_https(start_server, monkeypatch, certificate, trusted):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "cert.key")
    authority = certificate / ("cert.pem" if trusted else "other.pem")
    with Collector(context=context) as secure:
        server = start(start_server, monkeypatch, secure.url, OTEL_BSP_SCHEDULE_DELAY="10",
                       OTEL_EXPORTER_OTLP_CERTIFICATE=str(authority))
        trace, header = parent()
        encode(server, header)
        if trusted:
            await_spans(secure, trace, 5)
        else:
            wait_until("a refusal", 30, lambda: exports_total(server, "failed") > 0)
            assert secure.requests == []
            wait_until("the line", 30, lambda: "certificate verify failed" in server.log())


def test_the_environment_names_the_collector(start_server, monkeypatch):
    with Collector() as other:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", other.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
        server = start_server({"tiny": settings.TINY_MODEL}, "--dtype=f32").wait_ready()
        encode(server)
        trace, header = parent()
        encode(server, header)
        await_spans(other, trace, 5)
        assert {span.trace_id.hex() for span in other.spans if span.name != "batch"} == {trace}


def test_a_broken_environment_only_warns(start_server, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")
    server = start_server({"tiny": settings.TINY_MODEL}, "--dtype=f32").wait_ready()
    assert "OTEL_EXPORTER_OTLP_ENDPOINT is ignored" in server.log()
    assert "traceparent" not in encode(server)


def test_without_a_collector_there_is_no_thread(start_server, monkeypatch):
    off = start_server({"tiny": settings.TINY_MODEL}, "--dtype=f32").wait_ready()
    assert "trace-export" not in off.threads()
    assert "traceparent" not in encode(off)
    with Collector() as there:
        assert "trace-export" in start(start_server, monkeypatch, there.url).threads()


def test_a_wrong_flag(tmp_path):
    command = [settings.bin_dir() / "attendant-server", f"--model=tiny={settings.TINY_MODEL}",
               "--otlp_endpoint=collector:4317", f"--port_file={tmp_path / 'ports'}"]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert ended.returncode == 2 and "--otlp_endpoint: 'collector:4317' is not http://HOST:PORT" in ended.stderr
