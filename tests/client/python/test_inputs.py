# SPDX-License-Identifier: Apache-2.0
"""Inputs of other kinds than the client takes, and of kinds that look alike."""

import numpy as np
import pytest

import attendant
from attendant.inputs import to_padded, to_sequence


@pytest.mark.parametrize("mask", [[1, 0], [True, False], [1.0, 0.0], np.array([1, 0], np.uint8), np.array([1, 0], object)])
def test_masks(mask):
    assert to_sequence(attendant.TokenIds([5, 6], mask)).ids.attention_mask == [True, False]
    assert to_padded(attendant.PaddedBatch([[5, 6]], [mask])).attention_mask == [True, False]


@pytest.mark.parametrize("mask", [[0.0, -10000.0], [0.0, -np.inf], [1.0, np.nan], [1, 2], ["1", "0"]])
def test_masks_that_are_no_truth_values(mask):
    """The first two are added to scores: there 0 is true."""
    with pytest.raises(ValueError, match="attention_mask has values other than 0 and 1"):
        to_sequence(attendant.TokenIds([5, 6], mask))
    with pytest.raises(ValueError, match="attention_mask has values other than 0 and 1"):
        to_padded(attendant.PaddedBatch([[5, 6]], [mask]))
