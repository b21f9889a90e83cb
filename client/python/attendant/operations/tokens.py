# SPDX-License-Identifier: Apache-2.0
"""What heads on tokens make: sparse vectors, words for masks, labels of tokens, vectors of tokens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from attendant.errors import InternalError
from attendant.inputs import Inputs
from attendant.job import Job
from attendant.operations.requests import message, requests_of, split_rows
from attendant.operations.scores import Label, with_labels
from attendant.tensors import Array, to_array
from attendant.v1 import encoder_pb2 as pb

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class SparseVector:
    """A weight for some ids of the vocabulary."""

    ids: Array                # [weights] int32, ascending
    weights: Array            # [weights] float32, above zero
    tokens: list[str] | None  # [weights], if asked for

    def __len__(self) -> int:
        return len(self.ids)

    def dot(self, other: SparseVector) -> float:
        """The product of two vectors, which is their similarity."""
        _, mine, others = np.intersect1d(self.ids, other.ids, assume_unique=True, return_indices=True)
        return float(self.weights[mine] @ other.weights[others])


class Prediction(NamedTuple):
    token: str
    score: float
    token_id: int


@dataclass(frozen=True)
class FilledMask:
    """A mask token, and what may stand in its place, the likeliest first."""

    position: int  # among the tokens of its input, from 0
    predictions: list[Prediction]


@dataclass(frozen=True, eq=False)
class TokenLabels:
    """labels: [labels]; tokens: [len]; scores: [len, labels]. Item i has the labels of token i, the best first."""

    labels: tuple[str, ...]
    tokens: list[str]
    scores: Array

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> list[Label]:
        return Label.ranked(self.labels, self.scores[index])

    def __iter__(self) -> Iterator[list[Label]]:
        return (self[i] for i in range(len(self)))


def sparse(inputs: Inputs, *, model: str | None = None, top_k: int = 0, tokens: bool = False,
           prompt_name: str | None = None, truncation: str | None = None,
           batch_size: int = 32) -> Job[list[SparseVector]]:
    """The sparse vectors of a model such as SPLADE or BGE-M3: one for each input.

    top_k: the largest weights only; 0: all.
    tokens: the strings of the ids too.
    prompt_name, truncation, batch_size: as in embed()."""
    outputs = pb.OutputSelection(sparse=pb.SparseOutput(top_k=top_k), token_strings=tokens)
    request = message(model, outputs, truncation, prompt_name=prompt_name)
    return Job(requests_of(inputs, request, batch_size, lambda answer: sparse_vectors(answer, tokens)), _joined)


def multi_vectors(inputs: Inputs, *, model: str | None = None, prompt_name: str | None = None,
                  truncation: str | None = None, batch_size: int = 32) -> Job[list[Array]]:
    """A vector of length 1 for each token that counts, as ColBERT and BGE-M3 make them: [vectors, dims] for each input.

    prompt_name, truncation, batch_size: as in embed()."""
    outputs = pb.OutputSelection(multi_vector=pb.MultiVectorOutput())
    request = message(model, outputs, truncation, prompt_name=prompt_name)
    return Job(requests_of(inputs, request, batch_size, token_vectors), _joined)


def fill_mask(inputs: Inputs, *, model: str | None = None, top_k: int = 5, raw: bool = False,
              truncation: str | None = None, batch_size: int = 32) -> Job[list[list[FilledMask]]]:
    """The likeliest tokens at each mask token of each input. Texts have the mask token of the model: "[MASK]", "<mask>".

    top_k: predictions for each mask.
    raw: logits, instead of probabilities over the vocabulary."""
    outputs = pb.OutputSelection(fill_mask=pb.FillMaskOutput(top_k=top_k, raw=raw), token_strings=True)
    return Job(requests_of(inputs, message(model, outputs, truncation), batch_size, _filled_masks), _joined)


def classify_tokens(inputs: Inputs, *, model: str | None = None, labels: Sequence[str] | None = None, raw: bool = False,
                    truncation: str | None = None, batch_size: int = 32) -> Job[list[TokenLabels]]:
    """The scores of labels for each token, special tokens included: named entities, parts of speech.

    labels: their names. None asks the server at the same time, which takes an API key of the group `read`.
    raw: logits, instead of their softmax over the labels."""
    outputs = pb.OutputSelection(token_scores=pb.TokenScoreOutput(raw=raw), token_strings=True)
    requests = requests_of(inputs, message(model, outputs, truncation), batch_size, _token_scores)
    return with_labels(labels, lambda known: known.token_labels, requests,
                       lambda sequences: (scores for _, scores in sequences), _labelled)


def sparse_vectors(answer: pb.EncodeResponse, tokens: bool) -> list[SparseVector]:
    """Of each sequence. `tokens`: the request asked for strings."""
    sizes = [info.sparse_weights for info in answer.sequences]
    ids = split_rows("ids of sparse vectors", np.array(answer.sparse.ids, np.int32), sizes, 1)
    weights = split_rows("weights of sparse vectors", to_array(answer.sparse.weights), sizes, 1)
    if tokens:
        _check_names("tokens of sparse vectors", answer.sparse.token_strings, len(answer.sparse.ids))
    strings = iter(answer.sparse.token_strings)
    return [SparseVector(part, values, list(itertools.islice(strings, len(part))) if tokens else None)
            for part, values in zip(ids, weights)]


def token_vectors(answer: pb.EncodeResponse) -> list[Array]:
    """[vectors, dims] of each sequence."""
    sizes = [len(info.vector_tokens) for info in answer.sequences]
    return split_rows("vectors of tokens", to_array(answer.multi_vectors), sizes)


def _check_names(what: str, names: Sized, values: int) -> None:
    if len(names) != values:
        raise InternalError(f"the answer has {len(names)} {what} for {values} values")


def _filled_masks(answer: pb.EncodeResponse) -> list[list[FilledMask]]:
    found = answer.fill_mask
    scores = split_rows("predictions of masks", to_array(found.scores), [len(info.mask_tokens) for info in answer.sequences])
    values = math.prod(found.scores.shape)
    _check_names("token ids of masks", found.token_ids, values)
    _check_names("tokens of masks", found.token_strings, values)
    words = zip(found.token_strings, found.token_ids)

    def filled(position: int, row: Array) -> FilledMask:
        predictions = [Prediction(token, score, token_id) for score, (token, token_id) in zip(row.tolist(), words)]
        return FilledMask(position, predictions)

    return [list(map(filled, info.mask_tokens, rows)) for info, rows in zip(answer.sequences, scores)]


def _token_scores(answer: pb.EncodeResponse) -> list[tuple[list[str], Array]]:
    """(tokens, [len, labels]) of each sequence; of a PaddedBatch [seq, labels], zeros where the mask is false."""
    scores = to_array(answer.token_scores)
    parts: Any = scores
    if scores.ndim != 3 or len(scores) != len(answer.sequences):
        parts = split_rows("scores of tokens", scores, [info.tokens for info in answer.sequences])
    return [(list(info.token_strings), rows) for info, rows in zip(answer.sequences, parts)]


def _labelled(labels: tuple[str, ...], parts: list[list[tuple[list[str], Array]]]) -> list[TokenLabels]:
    return [TokenLabels(labels, tokens, scores) for tokens, scores in _joined(parts)]


def _joined(parts: list[list[T]]) -> list[T]:
    return [each for part in parts for each in part]
