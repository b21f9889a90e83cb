# SPDX-License-Identifier: Apache-2.0
"""Encode requests for any number of inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from attendant.choices import checked_text, number_of
from attendant.errors import InternalError
from attendant.inputs import Inputs, PaddedBatch, as_many, split, to_padded
from attendant.job import ENCODE, Request
from attendant.tensors import Array, to_array
from attendant.v1 import encoder_pb2 as pb

T = TypeVar("T")


def message(model: str | None, outputs: pb.OutputSelection, truncation: str | None, prompt_name: str | None = None,
            **fields: Any) -> pb.EncodeRequest:
    """With further fields of the request; None leaves one unset.

    truncation: None cuts texts at the model's limit, "right" and "left" ids too, "none" refuses what is too long."""
    number = number_of(pb.Truncation.DESCRIPTOR, "truncation", truncation)
    return pb.EncodeRequest(model=checked_text("model", model), outputs=outputs, truncation=number,
                            prompt_name=checked_text("prompt_name", prompt_name), **fields)


def requests_of(inputs: Inputs, prototype: pb.EncodeRequest, batch_size: int,
                parse: Callable[[pb.EncodeResponse], T]) -> Iterator[Request[T]]:
    """As many requests as the inputs take, each otherwise like `prototype`."""
    if isinstance(inputs, PaddedBatch):
        padded = pb.EncodeRequest(padded=to_padded(inputs))
        padded.MergeFrom(prototype)
        yield Request(ENCODE, padded, checked(parse, padded))
        return
    for first, sequences in split(as_many(inputs), batch_size):
        request = pb.EncodeRequest(sequences=pb.Sequences(sequences=sequences))
        request.MergeFrom(prototype)
        yield Request(ENCODE, request, checked(parse, request), f"inputs {first} to {first + len(sequences) - 1}" if first else "")


def checked(parse: Callable[[pb.EncodeResponse], T], request: pb.EncodeRequest) -> Callable[[pb.EncodeResponse], T]:
    """`parse` for the answer of this request. InternalError: it has more or fewer sequences, or names more or fewer tokens
    of one than that has."""
    asked = request.padded.batch if request.HasField("padded") else len(request.sequences.sequences)
    lists = [name for name in ("token_ids", "token_strings") if getattr(request.outputs, name)]

    def parse_checked(answer: pb.EncodeResponse) -> T:
        if len(answer.sequences) != asked:
            raise InternalError(f"the answer has {len(answer.sequences)} sequences, the request {asked}")
        for info, name in itertools.product(answer.sequences, lists):
            if len(getattr(info, name)) != info.tokens:
                raise InternalError(f"the answer has {len(getattr(info, name))} {name} of {info.tokens} tokens")
        return parse(answer)

    return parse_checked


def rows(what: str, tensor: pb.Tensor, answer: pb.EncodeResponse, rank: int = 2) -> Array:
    """[sequences, ..]"""
    values = to_array(tensor)
    if values.ndim != rank or len(values) != len(answer.sequences):
        raise InternalError(f"the answer has {what} of shape {list(values.shape)} for {len(answer.sequences)} sequences")
    return values


def join_rows(parts: list[Array]) -> Array:
    """[inputs, ..] from those of each request."""
    if not parts:
        return np.zeros((0, 0), np.float32)
    if len(widths := {part.shape[1:] for part in parts}) > 1:
        raise InternalError(f"the answers disagree: they have rows of {sorted(widths)} values")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def join_row(parts: list[Array]) -> Array:
    """The row of the only input."""
    row: Array = parts[0][0]
    return row


def split_rows(what: str, rows: Array, sizes: Sequence[int], rank: int = 2, axis: int = 0) -> list[Array]:
    """Views. `sizes`: how many of the rows, which lie along `axis`, each sequence of an answer has. InternalError: these are
    not as many as there are, or an array of another rank."""
    if rows.ndim != rank or rows.shape[axis] != sum(sizes) or min(sizes, default=0) < 0:
        raise InternalError(f"the answer has {what} of shape {list(rows.shape)}, its sequences have {list(sizes)}")
    return np.split(rows, list(itertools.accumulate(sizes))[:-1], axis)[:len(sizes)]
