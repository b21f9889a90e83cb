# SPDX-License-Identifier: Apache-2.0
"""The messages that take the most memory for their bytes, for every method: protobuf's wire format by hand."""

import collections

import numpy as np

ENCODER, ATTENTION = "/attendant.v1.Encoder/", "/attendant.v1.Attention/"
KSERVE, HEALTH = "/inference.GRPCInferenceService/", "/grpc.health.v1.Health/"

# outputs: bytes of the tensors and sequences that it asks for. ok: whether it is answered; None: either way.
Case = collections.namedtuple("Case", "name path stream message outputs ok")


def varint(number):
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(data) + bytes([number])


def field(number, data):
    """A field with a length: a string, a message, packed numbers."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field_number, value):
    return varint(field_number << 3) + varint(value)


def filled(element, size):
    """As many copies as fit."""
    return element * (size // len(element))


UNKNOWN = {"unknown strings": field(2000, b""), "unknown numbers": number(2000, 1),
           "unknown groups": varint(2000 << 3 | 3) + varint(2000 << 3 | 4)}


def encode_messages(size):
    """Messages of EncodeRequest; the model is tiny, hidden size 48."""
    def sequences(element):
        return field(1, b"tiny") + field(3, filled(element, size))

    def ids(*fields):
        return field(1, b"tiny") + field(3, field(1, field(2, b"".join(fields))))

    def rows(batch, seq):
        return field(1, b"tiny") + field(4, number(1, batch) + number(2, seq) + field(3, b"\5" * (batch * seq)))

    yield "empty sequences", sequences(field(1, b"")), 0
    yield "empty texts", sequences(field(1, field(1, b""))), 0
    yield "empty ids", sequences(field(1, field(2, b""))), 0
    yield "text and ids in turns", field(1, b"tiny") + field(3, field(1, filled(field(1, b"") + field(2, b""), size))), 0
    yield "sequences again and again", field(1, b"tiny") + filled(field(3, b"") + field(4, b""), size), 0
    yield "packed ids", ids(field(1, b"\5" * size)), 0
    yield "packed ids, segments and mask", ids(*(field(i, b"\1" * (size // 3)) for i in (1, 2, 3))), 0
    yield "single ids", ids(filled(number(1, 5), size)), 0
    yield "packed layers", field(1, b"tiny") + field(5, field(6, b"\1" * size)), 0
    yield "a text", field(1, b"tiny") + field(3, field(1, field(1, b"a " * (size // 2)))), 0
    yield "a long id", field(2, b"x" * size), 0
    yield "a long model", field(1, b"x" * size), 0
    count = min(4096, size // 7)
    one = field(1, field(2, field(1, b"\5")))
    yield "sequences of one token", field(1, b"tiny") + field(3, one * count), count * (192 + 1024)
    yield "rows of one token", rows(min(4096, size), 1), min(4096, size) * (192 + 1024)
    batch = min(4096, max(1, size // 40))
    yield "rows of 40 tokens", rows(batch, 40), batch * (192 + 1024)


def infer_messages(size):
    """Messages of ModelInferRequest."""
    def ids(datatype, count, **contents):
        tensor = field(1, b"input_ids") + field(2, datatype) + field(3, varint(count) + b"\1")
        if "typed" in contents:
            return field(1, b"tiny.ids") + field(5, tensor + field(5, contents["typed"]))
        return field(1, b"tiny.ids") + field(5, tensor) + field(7, contents["raw"])

    def inside(data):
        return field(1, b"tiny.ids") + field(5, field(5, data))

    for name, element in (("inputs", field(5, b"")), ("outputs", field(6, b"")), ("raw contents", field(7, b"")),
                          ("inputs with contents", field(5, field(5, b""))), ("parameters", field(4, b""))):
        yield f"empty {name}", field(1, b"tiny.ids") + filled(element, size), 0
    yield "parameters of an input", field(1, b"tiny.ids") + field(5, filled(field(4, b""), size)), 0
    yield "packed shape", field(1, b"tiny.ids") + field(5, field(3, b"\1" * size)), 0
    for name, content in (("bool", 1), ("int", 2), ("int64", 3), ("uint", 4), ("uint64", 5)):
        yield f"packed {name} contents", inside(field(content, b"\1" * size)), 0
    yield "packed fp32 contents", inside(field(6, bytes(size // 4 * 4))), 0
    yield "single int64 contents", inside(filled(number(3, 1), size)), 0
    yield "empty byte contents", inside(filled(field(8, b""), size)), 0
    yield "a long id", field(3, b"x" * size), 0
    yield "a long model", field(1, b"x" * size), 0
    for name, datatype, dtype in (("INT64", b"INT64", np.int64), ("INT32", b"INT32", np.int32)):
        count = min(4096, size // np.dtype(dtype).itemsize)
        yield (f"rows of one {name}", ids(datatype, count, raw=np.full(count, 5, dtype).tobytes()), count * (192 + 1024))
    count = min(4096, size)
    yield "rows of one typed INT32", ids(b"INT32", count, typed=field(2, b"\5" * count)), count * (192 + 1024)


def attend_messages(size):
    """Messages of AttendRequest. The scratch memory of their computation, which is the worker's, is small."""
    def tensor(shape, data, dtype=3):
        return number(1, dtype) + field(2, b"".join(map(varint, shape))) + field(3, data)

    tokens = min(30000, size // 3)
    query = field(4, tensor((tokens, 1), bytes(2 * tokens)))
    yield "ragged sequences of one token", query + field(7, b"\1" * tokens), tokens * 4
    rows = size // 2048
    yield "a query in F16", field(4, tensor((1, rows, 1024), bytes(2048 * rows))), rows * 4096
    yield "packed shape", field(4, field(2, b"\1" * size)), 0
    yield "packed lengths", field(4, tensor((1, 1, 1), bytes(2))) + field(7, b"\1" * size), 0
    yield "slopes", field(4, tensor((1, 1, 1), bytes(2))) + field(26, field(1, bytes(size // 4 * 4))), 0
    yield "kinds in turns", filled(b"".join(field(kind, b"") for kind in range(9, 17)), size), 0
    yield "weights again and again", field(10, filled(b"".join(field(i, b"") for i in range(2, 10)), size)), 0
    yield "a long id", field(2, b"x" * size), 0
    yield "a long model", field(1, b"x" * size), 0


INFERENCE = ((ENCODER + "Encode", False, encode_messages), (ENCODER + "EncodeStream", True, encode_messages),
             (KSERVE + "ModelInfer", False, infer_messages), (KSERVE + "ModelStreamInfer", True, infer_messages),
             (ATTENTION + "Attend", False, attend_messages), (ATTENTION + "AttendStream", True, attend_messages))
SMALL = (ENCODER + "ListModels", ATTENTION + "ListAttention", HEALTH + "Check",
         *(KSERVE + name for name in (
             "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelConfig", "ModelStatistics",
             "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryStatus",
             "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister", "CudaSharedMemoryStatus",
             "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister", "TraceSetting", "LogSettings")))
SERVER_STREAM = (HEALTH + "Watch",)
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def cases(size):
    """Every method with each of its messages, of about `size` bytes."""
    for path, stream, messages in INFERENCE:
        for name, message, outputs in messages(size):
            yield Case(name, path, stream, message, outputs, None)
        for name, element in UNKNOWN.items():
            yield Case(name, path, stream, filled(element, size), 0, False)
    for path in (*SMALL, REFLECTION):
        for name, element in UNKNOWN.items():
            yield Case(name, path, path == REFLECTION, filled(element, size), 0, None)
        yield Case("a string", path, path == REFLECTION, field(1, b"x" * size), 0, None)
