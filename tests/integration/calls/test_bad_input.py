# SPDX-License-Identifier: Apache-2.0
"""Bad input gets a clear status, and costs nothing else: the next good request is answered with the same bits."""

import grpc
import pytest

from harness.attendant import DEADLINE, ids, pb, request, texts

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
POOLED = {"pooled": pb.PooledOutput()}


def padded(batch, seq, token_ids, **fields):
    return pb.EncodeRequest(model="tiny", padded=pb.PaddedBatch(batch=batch, seq=seq, token_ids=token_ids, **fields))


# (request, code, words of the message)
BAD = {
    "unknown model": (request("nobody", texts("hello")), NOT_FOUND, ["nobody"]),
    "empty model name": (request("", [ids([5])]), None, []),
    "no input": (pb.EncodeRequest(model="tiny"), INVALID, []),
    "no sequences": (request("tiny", []), INVALID, []),
    "sequence without content": (request("tiny", [pb.Sequence()]), INVALID, ["sequence"]),
    "empty ids": (request("tiny", [ids([5]), ids([])]), INVALID, ["1"]),
    "id out of vocabulary": (request("tiny", [ids([5, 97])]), INVALID, ["97"]),
    "negative id": (request("tiny", [ids([-1])]), INVALID, ["-1"]),
    "largest id": (request("tiny", [ids([2**31 - 1])]), INVALID, [str(2**31 - 1)]),
    "segment out of range": (request("tiny", [ids([5], segments=[2])]), INVALID, ["2"]),
    "negative segment": (request("tiny", [ids([5], segments=[-1])]), INVALID, ["-1"]),
    "segments of another length": (request("tiny", [ids([5, 6], segments=[0])]), INVALID, ["1", "2"]),
    "mask of another length": (request("tiny", [ids([5, 6], mask=[True] * 3)]), INVALID, ["3", "2"]),
    "too long": (request("tiny", [ids([5] * 41)]), INVALID, ["41", "40"]),
    "text for a model without tokenizer": (request("tiny", texts("hello")), None, []),
    "long text, no truncation": (pb.EncodeRequest(
        model="minilm", truncation=pb.TRUNCATION_NONE,
        sequences=pb.Sequences(sequences=texts("word " * 300))), INVALID, ["302", "256"]),
    "too many dims": (request("tiny", [ids([5])], pooled=pb.PooledOutput(dims=49)), INVALID, ["49", "48"]),
    "negative dims": (request("tiny", [ids([5])], pooled=pb.PooledOutput(dims=-1)), INVALID, ["-1"]),
    "pooling that does not exist": (request("tiny", [ids([5])], pooled=pb.PooledOutput(pooling=99)), INVALID, ["99"]),
    "dtype that does not exist": (request("tiny", [ids([5])], dtype=99), INVALID, ["99"]),
    "truncation that does not exist": (pb.EncodeRequest(
        model="tiny", truncation=99, sequences=pb.Sequences(sequences=[ids([5])])), INVALID, ["99"]),
    "priority out of range": (pb.EncodeRequest(
        model="tiny", priority=101, sequences=pb.Sequences(sequences=[ids([5])])), INVALID, ["101", "100"]),
    "request id too long": (pb.EncodeRequest(
        model="tiny", id="x" * 257, sequences=pb.Sequences(sequences=[ids([5])])), INVALID, ["257", "256"]),
    "padded: fewer ids than declared": (padded(2, 3, [5] * 5), INVALID, ["5", "2 x 3"]),
    "padded: more ids than declared": (padded(2, 3, [5] * 7), INVALID, ["7", "2 x 3"]),
    "padded: zero batch": (padded(0, 3, []), INVALID, []),
    "padded: zero seq": (padded(3, 0, []), INVALID, []),
    "padded: negative shape": (padded(-2, -3, [5] * 6), INVALID, ["-2"]),
    "padded: huge shape": (padded(2**62, 2**62, [5]), INVALID, []),
    "padded: product overflows to the size": (padded(2**33, 2**31, []), INVALID, []),
    "padded: mask of another size": (padded(1, 2, [5, 6], attention_mask=[True]), INVALID, ["1", "2"]),
    "padded: segments of another size": (padded(1, 2, [5, 6], segment_ids=[0] * 3), INVALID, ["3", "2"]),
    "padded: id out of vocabulary": (padded(1, 2, [5, 97]), INVALID, ["97"]),
}


@pytest.fixture(scope="module")
def good():
    return request("tiny", [ids([5, 6, 7])], last_hidden_state=True, **POOLED)


@pytest.fixture
def still_well(client, good):
    """The same good request before and after the test."""
    before = client.encode(good)
    yield
    after = client.encode(good)
    assert after.pooled.data == before.pooled.data
    assert after.last_hidden_state.data == before.last_hidden_state.data


@pytest.mark.parametrize("name", BAD)
def test_bad_request(client, still_well, name):
    message, expected, words = BAD[name]
    code, details = client.error(message)
    assert code == expected if expected else code in (INVALID, NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION), details
    assert details
    for word in words:
        assert word in details


@pytest.mark.parametrize("data", [
    b"\xff" * 64,
    b"\x0a\xff\xff\xff\xff\x7f",
    # A Sequence whose text is not UTF-8.
    b"\x0a\x04tiny\x1a\x06\x0a\x04\x0a\x02\xc3\x28",
], ids=["garbage", "length beyond the end", "not UTF-8"])
def test_bytes_that_are_no_message(client, still_well, data):
    call = client.channel.unary_unary("/attendant.v1.Encoder/Encode")
    with pytest.raises(grpc.RpcError) as error:
        call(data, timeout=DEADLINE)
    assert error.value.code() == INVALID
    assert "attendant.v1.EncodeRequest" in error.value.details()


def test_expired_deadline(client, still_well):
    message = request("minilm", [ids([101, 2054, 102])] * 64, **POOLED)
    with pytest.raises(grpc.RpcError) as error:
        client.stub.Encode(message, timeout=0.0005)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_cancelled_calls(client, still_well):
    message = request("minilm", [ids([101] + [2054] * 100 + [102])] * 16, **POOLED)
    calls = [client.stub.Encode.future(message, timeout=DEADLINE) for _ in range(16)]
    for call in calls:
        call.cancel()


def test_one_bad_sequence_fails_its_request_only(client, good):
    bad = request("tiny", [ids([5]), ids([97])], **POOLED)
    calls = [client.stub.Encode.future(message, timeout=DEADLINE) for message in [good, bad] * 20]
    codes = [call.code() for call in calls]
    assert codes == [grpc.StatusCode.OK, INVALID] * 20
