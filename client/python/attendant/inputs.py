# SPDX-License-Identifier: Apache-2.0
"""What a model reads: texts, pairs of texts and token ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from attendant.choices import checked_count
from attendant.tensors import Array
from attendant.v1 import encoder_pb2 as pb

MAX_REQUEST_BYTES = 1 << 20  # of texts or ids in a request; a longer input goes alone


@dataclass(frozen=True, eq=False)
class TokenIds:
    """One sequence of token ids, special tokens included. [len] each; without a mask all tokens are attended to."""

    token_ids: ArrayLike
    attention_mask: ArrayLike | None = None
    segment_ids: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """Sequences of token ids padded to one length, as tokenizers of transformers make them with return_tensors="np":
    [batch, seq] each. Padding costs nothing: the server removes it."""

    input_ids: ArrayLike
    attention_mask: ArrayLike | None = None
    token_type_ids: ArrayLike | None = None


# A text; a tuple of two texts, which the model's tokenizer joins; token ids.
Input = str | tuple[str, str] | TokenIds | Sequence[int] | Array
# One input, or any number of them.
Inputs = str | TokenIds | PaddedBatch | Iterable[Input]


def is_table(given: object) -> bool:
    """It has named columns, as a DataFrame, and what it iterates over are their names."""
    return isinstance(given, Mapping) or hasattr(given, "columns")


def is_single(inputs: Inputs) -> bool:
    return isinstance(inputs, (str, TokenIds))


def as_many(inputs: Inputs) -> Iterable[Input]:
    """The inputs one by one. What a tokenizer of transformers returns is a mapping."""
    if is_single(inputs):
        return [cast("Input", inputs)]
    if isinstance(inputs, Mapping):
        raise TypeError("inputs are a mapping: PaddedBatch(**inputs) takes the arrays of a tokenizer")
    if is_table(inputs):
        raise TypeError("inputs are a table: give one of its columns")
    return cast("Iterable[Input]", inputs)


def to_sequence(given: Input) -> pb.Sequence:
    if isinstance(given, str):
        return pb.Sequence(text=given)
    if isinstance(given, tuple):
        match given:
            case (str(first), str(second)):
                return pb.Sequence(pair=pb.TextPair(first=first, second=second))
        raise TypeError(f"a tuple is a pair of two texts, not {given!r}")
    if given is None or isinstance(given, (bytes, int, float, np.generic)):
        raise TypeError(f"an input is a text, a pair of two texts or a list of token ids, not {given!r}; "
                        "[[101, 102]] has the token ids of one input")
    ids = given if isinstance(given, TokenIds) else TokenIds(given)
    return pb.Sequence(ids=pb.TokenIds(
        token_ids=_numbers("token_ids", ids.token_ids, 1), segment_ids=_numbers("segment_ids", ids.segment_ids, 1),
        attention_mask=_truths("attention_mask", ids.attention_mask, 1)))


def to_padded(batch: PaddedBatch) -> pb.PaddedBatch:
    rows, columns = shape = _shaped("input_ids", batch.input_ids, 2).shape
    for name in ("attention_mask", "token_type_ids"):
        given = getattr(batch, name)
        if given is not None and np.shape(given) != shape:
            raise ValueError(f"{name} has shape {list(np.shape(given))}: it must have that of input_ids, {list(shape)}")
    return pb.PaddedBatch(
        batch=rows, seq=columns, token_ids=_numbers("input_ids", batch.input_ids, 2),
        segment_ids=_numbers("token_type_ids", batch.token_type_ids, 2),
        attention_mask=_truths("attention_mask", batch.attention_mask, 2))


def split(inputs: Iterable[Input], max_sequences: int) -> Iterator[tuple[int, list[pb.Sequence]]]:
    """(number of the first input, sequences) for each request."""
    checked_count("batch_size", max_sequences)
    try:
        iter(inputs)
    except TypeError:
        raise TypeError(f"inputs are a text, TokenIds, or any number of inputs, not {inputs!r}") from None
    first, size, sequences = 0, 0, list[pb.Sequence]()
    for sequence in map(to_sequence, inputs):
        bytes_more = sequence.ByteSize()
        if sequences and (len(sequences) == max_sequences or size + bytes_more > MAX_REQUEST_BYTES):
            yield first, sequences
            first, size, sequences = first + len(sequences), 0, []
        sequences.append(sequence)
        size += bytes_more
    if sequences:
        yield first, sequences


def _shaped(what: str, values: ArrayLike, rank: int) -> Array:
    array = np.asarray(values)
    if array.ndim != rank:
        raise ValueError(f"{what} has shape {list(array.shape)}: it must have {rank} dimensions")
    return array


def _numbers(what: str, values: ArrayLike | None, rank: int) -> list[int]:
    if values is None:
        return []
    array = _shaped(what, values, rank)
    if array.size and array.dtype.kind not in "iu":
        hint = "; a pair of two texts is a tuple" if array.dtype.kind == "U" else ""
        raise TypeError(f"{what} must be integers, not {array.dtype}{hint}")
    numbers: list[int] = array.ravel().tolist()
    return numbers


def _truths(what: str, values: ArrayLike | None, rank: int) -> list[bool]:
    """Numbers that are added to scores are no truth values: there 0 stands for true."""
    if values is None:
        return []
    array = _shaped(what, values, rank)
    if array.size and (array.dtype.kind not in "biufO" or not np.isin(array, (0, 1)).all()):
        raise ValueError(f"{what} has values other than 0 and 1")
    truths: list[bool] = array.astype(bool).ravel().tolist()
    return truths
