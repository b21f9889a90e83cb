# SPDX-License-Identifier: Apache-2.0
"""Bad KServe requests get a clear status and cost nothing else: the next good one has the same bits."""

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc

from harness.attendant import DEADLINE

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED


def tensor(name, shape, datatype="INT64", **more):
    return service_pb2.ModelInferRequest.InferInputTensor(name=name, shape=shape, datatype=datatype, **more)


def infer(model, inputs, raw=(), **more):
    return service_pb2.ModelInferRequest(model_name=model, inputs=inputs, raw_input_contents=raw, **more)


def ids(*values, shape=None, model="minilm.ids", **more):
    raw = np.array(values, np.int64).tobytes()
    return infer(model, [tensor("input_ids", shape or [1, len(values)])], [raw], **more)


def text(raw, shape=(1, 1), datatype="BYTES"):
    return infer("minilm", [tensor("text", shape, datatype)], [raw])


def element(data):
    return len(data).to_bytes(4, "little") + data


def output(name, **parameters):
    return service_pb2.ModelInferRequest.InferRequestedOutputTensor(name=name, parameters={
        key: service_pb2.InferParameter(int64_param=value) for key, value in parameters.items()})


INT_1 = np.int64(1).tobytes()
SHARED = {"shared_memory_region": service_pb2.InferParameter(string_param="region")}
NEGATIVE = {"timeout": service_pb2.InferParameter(int64_param=-1)}

# (request, code, words of the message)
BAD = {
    "unknown model": (ids(5, model="nobody"), NOT_FOUND, ["nobody"]),
    "unknown model, a name of a megabyte": (ids(5, model="x" * (1 << 20)), NOT_FOUND, ["xxx"]),
    "text without tokenizer": (infer("tiny", [tensor("text", [1, 1], "BYTES")], [element(b"x")]), NOT_FOUND,
                               ["tiny", "tokenizer"]),
    "unknown version": (ids(5, model_version="2"), NOT_FOUND, ["2"]),
    "no inputs": (infer("minilm.ids", []), INVALID, ["input_ids"]),
    "unknown input": (infer("minilm.ids", [tensor("ids", [1, 1])], [INT_1]), INVALID, ["ids"]),
    "input given twice": (infer("minilm.ids", [tensor("input_ids", [1, 1])] * 2, [INT_1] * 2), INVALID, ["twice"]),
    "wrong datatype": (infer("minilm.ids", [tensor("input_ids", [1, 2], "FP32")], [INT_1]), INVALID, ["FP32"]),
    "fewer bytes than declared": (ids(5, 6, shape=[1, 3]), INVALID, ["16", "24"]),
    "more bytes than declared": (ids(5, 6, shape=[1, 1]), INVALID, ["16", "8"]),
    "huge shape": (ids(5, shape=[2**62, 2**62]), INVALID, [str(2**62)]),
    "product overflows to the size": (ids(shape=[2**33, 2**31]), INVALID, []),
    "zero batch": (ids(shape=[0, 3]), INVALID, ["0"]),
    "zero length": (ids(shape=[1 << 40, 0]), INVALID, ["0"]),
    "negative shape": (ids(5, shape=[-1, -1]), INVALID, ["-1"]),
    "one dimension": (ids(5, shape=[1]), INVALID, ["1", "2"]),
    "id out of vocabulary": (ids(101, 30522), INVALID, ["30522"]),
    "negative id": (ids(-1), INVALID, ["-1"]),
    "id beyond 32 bits": (ids(2**32 + 101), INVALID, [str(2**32 + 101)]),
    "too long": (ids(*[101] * 513), INVALID, ["513", "512"]),
    "mask of another shape": (infer("minilm.ids", [tensor("input_ids", [1, 2]), tensor("attention_mask", [2, 1])],
                                    [INT_1 * 2, INT_1 * 2]), INVALID, ["attention_mask"]),
    "mask of 2": (infer("minilm.ids", [tensor("input_ids", [1, 1]), tensor("attention_mask", [1, 1])],
                        [INT_1, np.int64(2).tobytes()]), INVALID, ["2", "0 or 1"]),
    "segment out of range": (infer("minilm.ids", [tensor("input_ids", [1, 1]), tensor("token_type_ids", [1, 1])],
                                   [INT_1, np.int64(2).tobytes()]), INVALID, ["2"]),
    "raw and typed contents": (infer("minilm.ids", [tensor(
        "input_ids", [1, 1], contents=service_pb2.InferTensorContents(int64_contents=[5]))], [INT_1]), INVALID, []),
    "more raw contents than inputs": (infer("minilm.ids", [tensor("input_ids", [1, 1])], [INT_1] * 2), INVALID,
                                      ["2", "1"]),
    "no contents": (infer("minilm.ids", [tensor("input_ids", [1, 1])]), INVALID, ["0", "1"]),
    "unknown output": (ids(5, outputs=[output("logits")]), INVALID, ["logits", "sentence_embedding"]),
    "output requested twice": (ids(5, outputs=[output("sentence_embedding")] * 2), INVALID, ["twice"]),
    "classification": (ids(5, outputs=[output("sentence_embedding", classification=3)]), UNIMPLEMENTED, []),
    "shared memory": (infer("minilm.ids", [tensor("input_ids", [1, 1], parameters=SHARED)]), UNIMPLEMENTED,
                      ["shared memory"]),
    "negative timeout": (ids(5, parameters=NEGATIVE), INVALID, ["timeout", "-1"]),
    "text: element longer than its bytes": (text(b"\xff\xff\xff\xffabc"), INVALID, []),
    "text: bytes after the last element": (text(element(b"a") + b"b"), INVALID, []),
    "text: fewer elements than declared": (text(element(b"a"), shape=(2, 1)), INVALID, ["1", "2"]),
    "text: shape [1]": (text(element(b"a"), shape=(1,)), INVALID, []),
    "text: shape [1, 2]": (text(element(b"a") * 2, shape=(1, 2)), INVALID, []),
    "text: not UTF-8": (text(element(b"ab\xff")), INVALID, ["UTF-8"]),
    "text: integers": (text(INT_1, datatype="INT64"), INVALID, ["BYTES"]),
}


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


@pytest.mark.parametrize("name", BAD)
def test_bad_request_then_a_good_one(stub, name):
    good = ids(101, 7592, 102)
    expected = stub.ModelInfer(good, timeout=DEADLINE).raw_output_contents
    request, code, words = BAD[name]
    with pytest.raises(grpc.RpcError) as caught:
        stub.ModelInfer(request, timeout=DEADLINE)
    assert caught.value.code() == code, caught.value.details()
    for word in words:
        assert word in caught.value.details()
    assert len(caught.value.details()) < 2000
    assert stub.ModelInfer(good, timeout=DEADLINE).raw_output_contents == expected


def test_typed_contents_are_taken(stub):
    typed = infer("minilm.ids", [tensor("input_ids", [1, 3],
                                        contents=service_pb2.InferTensorContents(int64_contents=[101, 7592, 102]))])
    assert (stub.ModelInfer(typed, timeout=DEADLINE).raw_output_contents ==
            stub.ModelInfer(ids(101, 7592, 102), timeout=DEADLINE).raw_output_contents)


def test_null_characters_and_empty_text_are_text(stub):
    response = stub.ModelInfer(text(element(b"a\0b") + element(b""), shape=(2, 1)), timeout=DEADLINE)
    assert list(response.outputs[0].shape) == [2, 384]


CALLS_WITHOUT_USE = [
    lambda client: client.register_system_shared_memory("region", "/key", 8),
    lambda client: client.register_cuda_shared_memory("region", b"AAAA", 0, 8),
    lambda client: client.get_trace_settings(),
    lambda client: client.get_log_settings(),
]


@pytest.mark.parametrize("call", CALLS_WITHOUT_USE)
def test_calls_that_make_no_sense_say_so(server, call):
    with triton.InferenceServerClient(server.grpc) as client:
        with pytest.raises(triton.InferenceServerException) as caught:
            call(client)
        assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
        assert caught.value.message()
