# SPDX-License-Identifier: Apache-2.0
"""Inputs of other kinds than the client takes, and of kinds that look alike."""

import grpc
import numpy as np
import pytest

import attendant
from attendant.inputs import to_padded, to_sequence
from fake_server import embedding, fails


class Table:
    """A DataFrame of pandas, as far as it matters: it iterates over the names of its columns."""

    columns = ["title", "text"]

    def __iter__(self):
        return iter(self.columns)


@pytest.mark.parametrize("call, error", [
    (lambda client: client.embed(Table()), "inputs are a table: give one of its columns"),
    (lambda client: client.encode(Table()), "inputs are a table"),
    (lambda client: client.rerank("a", Table()), "passages are a mapping or a table: give a list of texts"),
    (lambda client: client.embed([["a", "b"]]), "token_ids must be integers, not <U1; a pair of two texts is a tuple"),
    (lambda client: client.embed(np.array([["a", "b"]])), "a pair of two texts is a tuple"),
    (lambda client: client.embed(["a", "b"], batch_size=1.5), "batch_size is 1.5: it must be a whole number")])
def test_what_is_no_input(fake, connect, call, error):
    with connect() as client, pytest.raises(TypeError, match=error):
        call(client)
    assert not fake.requests


@pytest.mark.parametrize("call, error", [
    (lambda client: client.embed("a", model=5), "model is 5: it must be a text"),
    (lambda client: client.embed("a", model=0), "model is 0: it must be a text"),
    (lambda client: client.embed("a", prompt_name=5), "prompt_name is 5: it must be a text"),
    (lambda client: client.health(5), "service is 5: it must be a text"),
    (lambda client: client.attend(np.ones((1, 1, 2), np.float32), model=5), "model is 5: it must be a text"),
    (lambda client: client.attend(np.ones((1, 1, 2), np.float32), positions="rotary"),
     "positions is 'rotary': it must be Sinusoidal, Learned, Rotary or Alibi")])
def test_arguments_of_another_type(fake, connect, call, error):
    with connect() as client, pytest.raises(TypeError, match=f"^{error}$"):
        call(client)
    assert not fake.requests


@pytest.mark.parametrize("side", ["", "SERVER: "])
def test_a_request_that_is_too_large(fake, connect, side):
    fake.script = [fails(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{side}Received message larger than max (5 vs. 4)")]
    with connect() as client, pytest.raises(attendant.ResourceExhaustedError,
                                            match=r"^the request is larger than the server's --max_request_bytes: .*5 vs. 4"):
        client.embed("abc")
    assert len(fake.requests) == 1


def test_texts_of_numpy(fake, connect):
    with connect() as client:
        assert client.embed(np.array(["a", "bc"])).tolist() == [embedding("a"), embedding("bc")]
        assert client.embed(np.str_("bc"), batch_size=np.int64(1)).tolist() == embedding("bc")


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
