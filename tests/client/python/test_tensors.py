# SPDX-License-Identifier: Apache-2.0
"""numpy arrays on the wire."""

import numpy as np
import pytest

from attendant.tensors import to_array, to_tensor


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", ">f2", ">f8", ">i4", "?"])
def test_values_survive_whatever_the_order_of_their_bytes(dtype):
    values = np.array([[0, 1, 2], [3, 4, 5]], dtype)
    back = to_array(to_tensor(values))
    assert back.shape == values.shape and back.tolist() == values.tolist()
