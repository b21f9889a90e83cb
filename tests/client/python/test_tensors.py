# SPDX-License-Identifier: Apache-2.0
"""numpy arrays on the wire."""

import numpy as np
import pytest

from attendant import InternalError
from attendant.tensors import to_array, to_tensor
from attendant.v1 import encoder_pb2 as pb


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", ">f2", ">f8", ">i4", "?"])
def test_values_survive_whatever_the_order_of_their_bytes(dtype):
    values = np.array([[0, 1, 2], [3, 4, 5]], dtype)
    back = to_array(to_tensor(values))
    assert back.shape == values.shape and back.tolist() == values.tolist()


@pytest.mark.parametrize("values", [1j * np.ones(2), ["1.5", "2"], [b"1"], np.zeros(2, "datetime64[s]")])
def test_values_that_are_no_real_numbers(values):
    with pytest.raises(TypeError, match="an array is of .*: it must be of real numbers"):
        to_tensor(values)


@pytest.mark.parametrize("shape, size", [([-2, -2], 16), ([-1], 4), ([0, -5], 0), ([1] * 99, 4), ([0, 1 << 62], 0), ([2, 2], 12)])
def test_shapes_that_no_array_has(shape, size):
    with pytest.raises(InternalError, match=f"and {size} bytes"):
        to_array(pb.Tensor(dtype=pb.DTYPE_F32, shape=shape, data=bytes(size)))
