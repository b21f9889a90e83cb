# SPDX-License-Identifier: Apache-2.0
"""A client of attendant.v1.Attention, and the formulas that its answers are held to, in double precision."""

import json

import grpc
import numpy as np

from harness import attendant

pb = attendant.attention_pb
common = attendant.pb

NONE, PER_HEAD, AVERAGED = pb.ATTENTION_WEIGHTS_NONE, pb.ATTENTION_WEIGHTS_PER_HEAD, pb.ATTENTION_WEIGHTS_AVERAGED


def tensor(array, dtype="f32"):
    """A Tensor of the wire; truth values become BOOL."""
    array = np.ascontiguousarray(array)
    if array.dtype == bool:
        return common.Tensor(dtype=common.DTYPE_BOOL, shape=array.shape, data=array.astype("u1").tobytes())
    if dtype == "bf16":
        bits = array.astype("<f4").view("<u4")
        halves = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
        return common.Tensor(dtype=common.DTYPE_BF16, shape=array.shape, data=halves.tobytes())
    kind, name = (common.DTYPE_F32, "<f4") if dtype == "f32" else (common.DTYPE_F16, "<f2")
    return common.Tensor(dtype=kind, shape=array.shape, data=array.astype(name).tobytes())


def request(query, key=None, value=None, *, dtype="f32", mask=None, padding=None, parameters=None, **fields):
    """An AttendRequest; `parameters` is (kind's field, {name: array or number})."""
    message = pb.AttendRequest(query=tensor(query, dtype), **fields)
    for field, array in (("key", key), ("value", value), ("mask", mask), ("key_padding_mask", padding)):
        if array is not None:
            getattr(message, field).CopyFrom(tensor(array, dtype))
    if parameters is not None:
        kind = getattr(message, parameters[0])
        kind.SetInParent()
        for name, given in parameters[1].items():
            if isinstance(given, np.ndarray):
                getattr(kind, name).CopyFrom(tensor(given))
            else:
                setattr(kind, name, given)
    return message


def array(message):
    """A Tensor of the wire as float32."""
    if message.dtype == common.DTYPE_BF16:
        bits = np.frombuffer(message.data, "<u2").astype("<u4") << 16
        return bits.view("<f4").reshape(message.shape)
    return attendant.array(message)


class Client:
    def __init__(self, target):
        self.channel = grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", -1)])
        self.stub = attendant.attention_stubs.AttentionStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.channel.close()

    def attend(self, message, timeout=attendant.DEADLINE):
        return self.stub.Attend(message, timeout=timeout)

    def output(self, message):
        return array(self.attend(message).output)

    def error(self, message, timeout=attendant.DEADLINE):
        """Code and details of the error that a request must end in."""
        try:
            self.attend(message, timeout)
        except grpc.RpcError as error:
            return error.code(), error.details()
        raise AssertionError("the request was answered")


# The formulas, on [batch, heads, len, dim].

def softmax(scores):
    """Rows whose scores are all -inf become zeros."""
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def bias(mask):
    """What is added to the scores."""
    return np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)


def causal_mask(queries, keys):
    return np.arange(keys)[None, :] <= np.arange(queries)[:, None]


def attend(query, key, value, scores=None, masks=(), scale=None):
    """output and weights."""
    query, key, value = (operand.astype(np.float64) for operand in (query, key, value))
    if scores is None:
        scores = query @ key.swapaxes(-1, -2) * (scale if scale is not None else query.shape[-1] ** -0.5)
    for mask in masks:
        scores = scores + bias(mask)
    weights = softmax(scores)
    return weights @ value, weights


def split_heads(rows, heads):
    """[batch, len, hidden] to [batch, heads, len, head_dim]."""
    batch, length, hidden = rows.shape
    return rows.reshape(batch, length, heads, hidden // heads).swapaxes(1, 2)


def multi_head(state, heads, query, key, value, masks=()):
    """nn.MultiheadAttention by its state_dict; output and weights of each head."""
    parts = np.split(state["in_proj_weight"].astype(np.float64), 3)
    biases = np.split(state["in_proj_bias"].astype(np.float64), 3)
    projected = [split_heads(operand @ part.T + b, heads) for operand, part, b in zip((query, key, value), parts, biases)]
    output, weights = attend(*projected, masks=masks)
    joined = output.swapaxes(1, 2).reshape(query.shape)
    return joined @ state["out_proj.weight"].astype(np.float64).T + state["out_proj.bias"], weights


def write_module(folder, config, state):
    """A checkpoint as kernels/io reads it."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    header, body = {}, b""
    for name, values in state.items():
        data = values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
    return folder
