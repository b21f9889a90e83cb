# SPDX-License-Identifier: Apache-2.0
"""Small hostile messages take little memory, whatever they ask for; slow readers lose their own answers."""

import contextlib
import itertools
import threading

import grpc
import pytest

from harness import attendant, exposition, hostile, memory, settings
from harness.attendant import DEADLINE, pb
from harness.server import wait_until
from harness.slow_client import SlowClient

MIB = 1 << 20

# What docs/bounds.md promises: beyond the outputs that it asks for, a request of n bytes takes at most
# FACTOR * n + FIXED.
FACTOR, FIXED = 64, MIB


def call(target, case):
    """How the call ends: the status, or for a stream the number of answers."""
    with memory.raw_channel(target) as channel:
        try:
            if case.stream:
                return len(list(channel.stream_stream(case.path)(iter([case.message]), timeout=DEADLINE)))
            channel.unary_unary(case.path)(case.message, timeout=DEADLINE)
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            return error.code()


def growth(server, case):
    """The most memory that the server took above what it had before the call."""
    before = memory.resident_bytes(server.pid)
    memory.reset_peak(server.pid)
    code = call(server.grpc, case)
    return memory.peak_bytes(server.pid) - before, code


def check_bound(server, case):
    grown, code = growth(server, case)
    size = len(case.message)
    memory.check_growth(f"{case.path} {case.name}: {size} bytes, {code}, {grown / size:.1f} times", grown,
                        FACTOR * size + FIXED + case.outputs)
    if case.ok is False and not case.stream:
        assert code == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("size", [2 * MIB, 32 << 10])
@pytest.mark.parametrize("path", [path for path, _, _ in hostile.INFERENCE])
def test_inference_methods_hold_the_bound(start_server, path, size):
    """A server for each message: one that has freed memory would hide what the next one takes."""
    for case in hostile.cases(size):
        if case.path != path:
            continue
        server = start_server({"tiny": settings.TINY_MODEL}, "--threads=1").wait_ready()
        call(server.grpc, case._replace(message=b""))
        check_bound(server, case)
        server.stop()


@pytest.mark.parametrize("size", [2 * MIB, 60 << 10])
def test_other_methods_hold_the_bound(start_server, size):
    inference = {path for path, _, _ in hostile.INFERENCE}
    server = start_server({"tiny": settings.TINY_MODEL}, "--threads=1").wait_ready()
    for path, cases in itertools.groupby(hostile.cases(size), lambda case: case.path):
        for case in cases if path not in inference else ():
            check_bound(server, case)
            if size > 64 << 10 and path != hostile.REFLECTION:
                assert call(server.grpc, case) == grpc.StatusCode.INVALID_ARGUMENT


def test_compressed_messages_are_refused_before_they_are_inflated(server):
    """256 KiB of gzip that would become 256 MiB."""
    peak = memory.peak_bytes(server.pid)
    for path in ("/grpc.health.v1.Health/Check", "/attendant.v1.Encoder/Encode",
                 "/inference.GRPCInferenceService/ModelInfer"):
        with pytest.raises(grpc.RpcError) as error, memory.raw_channel(server.grpc) as channel:
            channel.unary_unary(path)(bytes(256 * MIB), timeout=DEADLINE, compression=grpc.Compression.Gzip)
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED, error.value
        assert "gzip" in error.value.details()
    memory.check_growth("three compressed messages", memory.peak_bytes(server.pid) - peak, 8 * MIB)


def test_watches_do_not_keep_what_their_clients_sent(start_server):
    """Names of 60,000 bytes, which nothing is served by."""
    server = start_server({"tiny": settings.TINY_MODEL}, "--threads=1").wait_ready()
    before = memory.resident_bytes(server.pid)
    message, count = hostile.field(1, b"x" * 60_000), 900
    with memory.raw_channel(server.grpc) as channel:
        watches = [channel.unary_stream("/grpc.health.v1.Health/Watch")(message, timeout=DEADLINE) for _ in range(count)]
        for watch in watches:
            assert next(watch) == b"\x08\x03"  # SERVICE_UNKNOWN
        # 32 KiB each are accounted for, and as much may be left over of the messages' way.
        memory.check_growth("watches", memory.resident_bytes(server.pid) - before, count * (64 << 10))


GOOD = {
    hostile.ENCODER + "EncodeStream":
        pb.EncodeRequest(model="tiny", sequences=pb.Sequences(sequences=[attendant.ids([5])])).SerializeToString(),
    hostile.ATTENTION + "AttendStream":
        attendant.attention_pb.AttendRequest(query=pb.Tensor(dtype=pb.DTYPE_F32, shape=[1, 1, 1],
                                                             data=bytes(4))).SerializeToString(),
    hostile.KSERVE + "ModelStreamInfer": hostile.field(1, b"tiny.ids"),  # answered with an error, and an answer it is
}


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize("bad", [b"\xff\xff", b"\x0a\x02\xc3\x28"], ids=["no message", "not UTF-8"])
def test_a_message_that_does_not_parse_is_answered_and_the_stream_goes_on(server, path, bad):
    with memory.raw_channel(server.grpc) as channel:
        stream = channel.stream_stream(path)(iter([GOOD[path], bad, GOOD[path]]), timeout=DEADLINE)
        assert len(list(stream)) == 3
        assert stream.code() == grpc.StatusCode.OK


def test_ids_that_are_too_long_do_not_come_back(start_server):
    """Three ids of 15 MiB on each of 8 streams: less stays than one of them for each stream."""
    server = start_server({"tiny": settings.TINY_MODEL}, "--max_pending_request_bytes=67108864",
                          "--max_pending_response_bytes=67108864").wait_ready()
    before = memory.resident_bytes(server.pid)
    stay = threading.Event()

    def messages():
        yield from [hostile.field(3, b"x" * (15 * MIB))] * 3
        stay.wait()

    path = hostile.KSERVE + "ModelStreamInfer"
    channels = [memory.raw_channel(server.grpc) for _ in range(8)]
    streams = [channel.stream_stream(path)(messages(), timeout=DEADLINE) for channel in channels]
    answers = [next(stream) for stream in streams for _ in range(3)]
    assert all(b"id has 15728640 bytes" in answer and len(answer) < 1024 for answer in answers)
    memory.check_growth("ids of 8 streams", memory.resident_bytes(server.pid) - before, 8 * 15 * MIB)
    stay.set()
    for channel in channels:
        channel.close()


def refused(server, reason):
    return exposition.Page(server.get("/metrics")[1]).value("attendant_refused_total", reason=reason)


def test_a_slow_reader_loses_its_own_answers(start_server):
    """Answers of 64 MiB each, which nobody reads, on one connection: others are served all the time."""
    server = start_server({"tiny": settings.TINY_MODEL}, "--max_write_s=3").wait_ready()
    good = attendant.request("tiny", [attendant.ids([5, 6])])
    large = attendant.attention_pb.AttendRequest(
        query=pb.Tensor(dtype=pb.DTYPE_F16, shape=[1, 4095, 1], data=bytes(2 * 4095)),
        weights=attendant.attention_pb.ATTENTION_WEIGHTS_PER_HEAD).SerializeToString()
    with SlowClient(server.grpc) as slow, attendant.Client(server.grpc) as other:
        for _ in range(6):
            slow.call(hostile.ATTENTION + "AttendStream", large)
        wait_until("a refusal", 30, lambda: refused(server, "connection_memory") > 0)
        other.encode(good)
        wait_until("the slow calls' end", 60, lambda: refused(server, "slow_reader") >= 3)
        other.encode(good)
    if not settings.SANITIZED:
        wait_until("their memory", 30, lambda: memory.resident_bytes(server.pid) < 400 * MIB)


def test_calls_without_messages_of_many_connections(start_server):
    """12,000 heads, which take more than 200 MB where they all stay. A slow client and new ones are served beside them."""
    server = start_server({"tiny": settings.TINY_MODEL}, f"--max_waiting_call_bytes={32 * MIB}").wait_ready()
    message = attendant.request("tiny", [attendant.ids([5, 6])]).SerializeToString()
    send = threading.Event()

    def late():
        send.wait(DEADLINE)
        yield message

    with memory.raw_channel(server.grpc) as channel, contextlib.ExitStack() as clients:
        slow = channel.stream_unary(hostile.ENCODER + "Encode").future(late(), timeout=DEADLINE)
        wait_until("the slow call", 30, lambda: '"call_memory_bytes": 20480' in server.get("/connections")[1])
        before = memory.resident_bytes(server.pid)
        memory.reset_peak(server.pid)
        flood = [clients.enter_context(SlowClient(server.grpc)) for _ in range(40)]
        most = 24 * MIB // (20 << 10)
        for sent in range(400, 12_001, 400):  # not faster than the server ends them: gRPC itself reads ahead without a bound
            for _, client in itertools.product(range(10), flood):
                client.call(hostile.ENCODER + "Encode")
            wait_until("calls that give way", 60, lambda least=sent + 1 - most: refused(server, "call_memory") >= least)
        memory.check_growth("calls without messages", memory.peak_bytes(server.pid) - before, 64 * MIB)
        with attendant.Client(server.grpc) as other:
            other.encode(attendant.request("tiny", [attendant.ids([5, 6])]))
        send.set()
        assert slow.result()


def test_ends_that_their_client_does_not_take(start_server):
    """Calls of unknown methods, until their ends do not fit into the buffers of the sockets."""
    server = start_server({"tiny": settings.TINY_MODEL}, f"--max_waiting_call_bytes={MIB}").wait_ready()
    with SlowClient(server.grpc) as slow, attendant.Client(server.grpc) as other:
        def calls_give_way():
            for _ in range(500):
                slow.call("/no.Service/" + "m" * 100)
            return refused(server, "call_memory") > 0

        wait_until("calls that give way", 30, calls_give_way)
        other.encode(attendant.request("tiny", [attendant.ids([5, 6])]))


def test_unread_errors_end_their_streams(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, "--max_response_bytes=1024",
                          "--max_pending_response_bytes=65536").wait_ready()
    bad = pb.EncodeRequest(model="nobody").SerializeToString()
    good = attendant.request("tiny", [attendant.ids([5, 6])])
    with SlowClient(server.grpc) as slow:
        for _ in range(4):
            slow.call(hostile.ENCODER + "EncodeStream", *[bad] * 1200)
        wait_until("a refusal", 30, lambda: refused(server, "connection_memory") > 0)
    with attendant.Client(server.grpc) as other:
        wait_until("room", 30, lambda: other.stub.Encode.future(good).code() == grpc.StatusCode.OK)
