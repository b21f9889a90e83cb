# SPDX-License-Identifier: Apache-2.0
"""Many requests on one stream: each is answered once, a bad one does not end it."""

import grpc
import numpy as np

from harness.attendant import DEADLINE, array, ids, pb, request, texts


def numbered(*messages):
    """Copies of the requests with the ids 0, 1, 2, ..."""
    copies = [pb.EncodeRequest.FromString(message.SerializeToString()) for message in messages]
    for index, message in enumerate(copies):
        message.id = str(index)
    return iter(copies)


def test_every_request_is_answered_by_id(client, sentences):
    strings, _, expected = sentences
    messages = [request("minilm", texts(string), pooled=pb.PooledOutput()) for string in strings]
    answers = list(client.stub.EncodeStream(numbered(*messages), timeout=DEADLINE))
    assert sorted(int(answer.id) for answer in answers) == list(range(len(strings)))
    for answer in answers:
        pooled = array(answer.response.pooled)[0]
        assert np.abs(pooled - expected[int(answer.id)]).max() <= 1e-5


def test_a_bad_request_fails_alone(client):
    good = request("minilm", texts("good"), pooled=pb.PooledOutput())
    bad = request("minilm", [ids([10_000_000])], pooled=pb.PooledOutput())
    unknown = request("nobody", texts("good"), pooled=pb.PooledOutput())
    stream = client.stub.EncodeStream(numbered(good, bad, unknown, good), timeout=DEADLINE)
    answers = {answer.id: answer for answer in stream}
    assert answers["0"].response.pooled.data == answers["3"].response.pooled.data != b""
    assert answers["1"].error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert answers["2"].error.code == grpc.StatusCode.NOT_FOUND.value[0]


def test_an_empty_stream_ends_well(client):
    assert list(client.stub.EncodeStream(iter([]), timeout=DEADLINE)) == []


def test_a_cancelled_stream_leaves_the_server_well(client):
    def endless():
        while True:
            yield request("minilm", texts("again and again"), pooled=pb.PooledOutput())
    stream = client.stub.EncodeStream(endless(), timeout=DEADLINE)
    next(stream)
    stream.cancel()
    assert client.pooled("minilm", texts("still there")).shape == (1, 384)
