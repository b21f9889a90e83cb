# SPDX-License-Identifier: Apache-2.0
"""Tensors of the wire as numpy arrays.

An array from an answer is a read-only view of its bytes. Format on the wire and in numpy: f32 is float32, f16 is float16,
bool is bool, int8 and binary are int8, ubinary is uint8. numpy has no bf16: an answer in bf16 becomes float32, which is
exact; arrays of ml_dtypes.bfloat16 are sent as they are. Arrays of other numbers are sent as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attendant.errors import InternalError
from attendant.v1 import encoder_pb2 as pb

Array = NDArray[Any]

_VIEWS: dict[int, np.dtype[Any]] = {
    pb.DTYPE_F32: np.dtype("<f4"), pb.DTYPE_F16: np.dtype("<f2"), pb.DTYPE_BF16: np.dtype("<u2"),
    pb.DTYPE_BOOL: np.dtype("?"), pb.DTYPE_INT8: np.dtype("i1"), pb.DTYPE_BINARY: np.dtype("i1"),
    pb.DTYPE_UBINARY: np.dtype("u1")}
_WIRE_TYPES = {"float32": pb.DTYPE_F32, "float16": pb.DTYPE_F16, "bfloat16": pb.DTYPE_BF16}
_EMBEDDING_TYPES = {**_WIRE_TYPES, "int8": pb.DTYPE_INT8, "binary": pb.DTYPE_BINARY, "ubinary": pb.DTYPE_UBINARY}


def wire_type(what: str, name: str | None) -> pb.DType:
    """The DType of "float32", "float16" or "bfloat16"; None leaves it to the server."""
    return _type_of(_WIRE_TYPES, what, name)


def embedding_type(what: str, name: str | None) -> pb.DType:
    """The same for pooled embeddings: also "int8", "binary" and "ubinary"."""
    return _type_of(_EMBEDDING_TYPES, what, name)


def _type_of(types: dict[str, pb.DType], what: str, name: str | None) -> pb.DType:
    if name is None:
        return pb.DTYPE_UNSPECIFIED
    if name not in types:
        raise ValueError(f"{what} is {name!r}: it must be one of {', '.join(types)}")
    return types[name]


def to_array(tensor: pb.Tensor) -> Array:
    """Float32, float16, bool, int8 or uint8, in the tensor's shape. InternalError: type, shape and bytes disagree."""
    view = _VIEWS.get(tensor.dtype)
    if view is None or min(tensor.shape, default=0) < 0 or math.prod(tensor.shape) * view.itemsize != len(tensor.data):
        raise _fault_of(tensor)
    try:
        values: Array = np.frombuffer(tensor.data, view).reshape(tensor.shape)
    except ValueError as error:  # more dimensions, or larger ones, than numpy has
        raise _fault_of(tensor) from error
    if tensor.dtype == pb.DTYPE_BF16:
        values = (values.astype("<u4") << 16).view("<f4")
    return values


def _fault_of(tensor: pb.Tensor) -> InternalError:
    return InternalError(f"the answer has a tensor of type {tensor.dtype}, shape {list(tensor.shape)} and "
                         f"{len(tensor.data)} bytes")


def to_tensor(values: ArrayLike) -> pb.Tensor:
    """The values in the format that they have, or in float32. TypeError: they are not of real numbers or bool."""
    array = np.ascontiguousarray(values)
    if array.dtype == bool:
        dtype = pb.DTYPE_BOOL
    elif array.dtype.name in _WIRE_TYPES:
        dtype, array = _WIRE_TYPES[array.dtype.name], array.astype(array.dtype.newbyteorder("<"), copy=False)
    elif array.dtype.kind in "cmMSU":  # numpy would drop a part, or read texts
        raise TypeError(f"an array is of {array.dtype}: it must be of real numbers or bool")
    else:
        dtype, array = pb.DTYPE_F32, array.astype("<f4")
    return pb.Tensor(dtype=dtype, shape=np.shape(values), data=array.tobytes())
