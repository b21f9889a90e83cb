# SPDX-License-Identifier: Apache-2.0
"""Attention on arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attendant.choices import checked_text, number_of
from attendant.errors import InternalError
from attendant.job import ATTEND, LIST_ATTENTION, Job, Request
from attendant.operations.positions import Positions
from attendant.operations.timings import Timings
from attendant.tensors import Array, to_array, to_tensor, wire_type
from attendant.v1 import attention_pb2 as pb

# Names of attention_kinds() that are a field of a request with a choice in it.
_CHOICES = {"flash": ("scaled_dot_product", {"algorithm": "flash"}), "luong_dot": ("luong", {"score": "dot"}),
            "luong_general": ("luong", {"score": "general"}), "luong_concat": ("luong", {"score": "concat"})}

# One array, or one for each sequence.
Operand = ArrayLike | Sequence[ArrayLike]


@dataclass(frozen=True, eq=False)
class AttendResult:
    """Of a ragged request: an array for each sequence. Of "linformer", key_len is projected_len."""

    output: Array | list[Array]          # shaped as the query, with value_dim (of modules: hidden) as its last dimension
    weights: Array | list[Array] | None  # [batch, heads, query_len, key_len], without the heads that there are not
    timings: Timings


@dataclass(frozen=True)
class AttentionKind:
    """A kind of attention; the texts are for people."""

    name: str
    title: str
    formula: str
    time: str      # of n queries and n keys
    memory: str    # beyond operands and output
    use: str
    weights: bool  # whether it can return attention weights
    parameters: dict[str, str]  # names and shapes of its tensors


def attend(query: Operand, key: Operand | None = None, value: Operand | None = None, *,
           kind: str = "scaled_dot_product", model: str | None = None, mask: ArrayLike | None = None,
           key_padding_mask: ArrayLike | None = None, causal: bool = False, scale: float | None = None,
           positions: Positions | None = None, weights: str = "none", compute_dtype: str | None = None,
           dtype: str = "float32", **parameters: Any) -> Job[AttendResult]:
    """Attention of `query` over `key` (None: the query) and `value` (None: the key), each float32, float16 or bfloat16.

    query: [batch, query_len, query_dim], or with heads [batch, heads, query_len, query_dim]. Or a list with an array for
      each sequence, [query_len, query_dim] or [query_len, heads, query_dim]; key and value likewise.
    kind: a name of attention_kinds(), whose `parameters` follow under their names: window=2, query_weight=array.
    model: a module that the server has loaded, in place of `kind`; of its versions, the highest that serves.
    mask: true where a query may attend, or numbers to add to the scores: [query_len, key_len], with batch and heads before
      them if these matter. key_padding_mask: [batch, key_len], false hides a key; PyTorch's is the opposite.
    weights: "none", "per_head" or "averaged": attention weights in the answer.
    compute_dtype: "float32" or "bfloat16". dtype: of the answer on the wire."""
    request = pb.AttendRequest(
        model=checked_text("model", model), causal=causal, scale=scale, dtype=wire_type("dtype", dtype),
        weights=number_of(pb.AttentionWeightsOutput.DESCRIPTOR, "weights", weights),
        compute_dtype=wire_type("compute_dtype", compute_dtype))
    query_lengths = _put_operand(request, "query", query)
    key_lengths = query_lengths if key is None else _put_operand(request, "key", key)
    value_lengths = key_lengths if value is None else _put_operand(request, "value", value)
    if (query_lengths is None) != (key_lengths is None):
        raise ValueError("query and key are both an array, or both a list with an array for each sequence")
    if value_lengths != key_lengths:
        raise ValueError(f"value has sequences of {_lengths(value_lengths)} rows, key of {_lengths(key_lengths)}")
    request.query_lengths.extend(query_lengths or ())
    request.key_lengths.extend(key_lengths or ())
    for name, given in (("mask", mask), ("key_padding_mask", key_padding_mask)):
        if given is not None:
            getattr(request, name).CopyFrom(to_tensor(_mask(name, given)))
    if positions is not None:
        if not isinstance(positions, Positions):
            raise TypeError(f"positions is {positions!r}: it must be Sinusoidal, Learned, Rotary or Alibi")
        positions.put(request)
    if model is None:
        _put_kind(request, kind, parameters)
    elif parameters:
        raise TypeError(f"a module has its own parameters: {', '.join(parameters)}")
    return Job.of(Request(ATTEND, request, lambda answer: _result(answer, request)))


def attention_kinds() -> Job[list[AttentionKind]]:
    """The kinds that attend() offers, with the names and shapes of their tensors."""
    def kind(info: pb.AttentionKindInfo) -> AttentionKind:
        parameters = {each.name: each.shape + (", optional" if each.optional else "") for each in info.parameters}
        return AttentionKind(info.name, info.title, info.formula, info.time, info.memory, info.use, info.weights,
                             parameters)

    return Job.of(Request(LIST_ATTENTION, pb.ListAttentionRequest(), lambda answer: list(map(kind, answer.kinds))))


def _put_operand(request: pb.AttendRequest, name: str, operand: Operand) -> list[int] | None:
    """The lengths of the sequences, if they have their own."""
    if not isinstance(operand, (list, tuple)):
        getattr(request, name).CopyFrom(to_tensor(np.asarray(operand)))
        return None
    arrays = [np.asarray(array) for array in operand]
    if not arrays or any(array.ndim not in (2, 3) for array in arrays):
        raise ValueError(f"{name}: a list has an array of 2 or 3 dimensions for each sequence")
    getattr(request, name).CopyFrom(to_tensor(np.concatenate(arrays)))
    return [len(array) for array in arrays]


def _lengths(lengths: list[int] | None) -> str:
    return "one length" if lengths is None else ", ".join(map(str, lengths))


def _mask(name: str, given: ArrayLike) -> Array:
    """Integers could be truth values or numbers to add; TypeError: they are neither."""
    mask: Array = np.asarray(given)
    if mask.dtype.kind in "iu":
        raise TypeError(f"{name} is of {mask.dtype}: it must be of bool, or of floats to add to the scores")
    return mask


def _put_kind(request: pb.AttendRequest, name: str, parameters: dict[str, Any]) -> None:
    field, choices = _CHOICES.get(name, (name, {}))
    kinds = [each.name for each in pb.AttendRequest.DESCRIPTOR.oneofs_by_name["kind"].fields]
    if field not in kinds:
        raise ValueError(f"kind is {name!r}: it must be one of {', '.join([*kinds, *_CHOICES])}")
    message = getattr(request, field)
    message.SetInParent()
    fields = message.DESCRIPTOR.fields_by_name
    for parameter, value in {**choices, **parameters}.items():
        if parameter not in fields:
            raise TypeError(f"{name} has no parameter {parameter!r}: it has {', '.join(fields) or 'none'}")
        if fields[parameter].message_type is not None:
            getattr(message, parameter).CopyFrom(to_tensor(value))
        elif fields[parameter].enum_type is not None:
            setattr(message, parameter, number_of(fields[parameter].enum_type, parameter, value))
        else:
            setattr(message, parameter, value)


def _result(answer: pb.AttendResponse, request: pb.AttendRequest) -> AttendResult:
    output = to_array(answer.output)
    weights = to_array(answer.weights) if request.weights != pb.ATTENTION_WEIGHTS_NONE else None
    query = tuple(request.query.shape)
    if output.shape[:-1] != query[:-1] or output.ndim != len(query):
        raise InternalError(f"the answer has an output of shape {list(output.shape)} for a query of shape {list(query)}")
    if not request.query_lengths:
        if weights is not None and (
                weights.ndim not in (3, 4) or (weights.shape[:1], weights.shape[-2:-1]) != (query[:1], query[-2:-1])):
            raise InternalError(f"the answer has weights of shape {list(weights.shape)} for a query of shape {list(query)}")
        return AttendResult(output, weights, Timings.of(answer.timings))
    ends = np.cumsum(request.query_lengths)[:-1]
    return AttendResult(np.split(output, ends), None if weights is None else _split_weights(weights, request),
                        Timings.of(answer.timings))


def _split_weights(flat: Array, request: pb.AttendRequest) -> list[Array]:
    """Ragged weights, which come one sequence after another."""
    key_lengths = list(request.key_lengths)
    if request.WhichOneof("kind") == "linformer":  # its keys are projected to the same length in every sequence
        key_lengths = [request.linformer.key_projection.shape[0]] * len(request.query_lengths)
    sizes = list(zip(request.query_lengths, key_lengths))
    areas = np.array([queries * keys for queries, keys in sizes])
    has_heads = request.weights == pb.ATTENTION_WEIGHTS_PER_HEAD and (
        len(request.query.shape) == 3 or bool(request.model) or request.WhichOneof("kind") == "multi_head")
    heads = (flat.size // max(int(areas.sum()), 1),) if has_heads else ()
    if math.prod(heads) * areas.sum() != flat.size:
        raise InternalError(f"the answer has {flat.size} weights for queries and keys of {sizes}")
    parts = np.split(flat.ravel(), np.cumsum(areas * (heads[0] if heads else 1))[:-1])
    return [part.reshape(*heads, *size) for part, size in zip(parts, sizes)]
