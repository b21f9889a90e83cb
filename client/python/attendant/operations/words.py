# SPDX-License-Identifier: Apache-2.0
"""Weights of words by attention: what BM42 is made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from attendant.errors import InternalError
from attendant.inputs import Inputs
from attendant.job import Job
from attendant.operations.requests import message, requests_of, split_rows
from attendant.tensors import Array, to_array
from attendant.v1 import encoder_pb2 as pb


@dataclass(frozen=True, eq=False)
class WordWeights:
    """The words of an input as its tokenizer has them, mostly in lower case, in their order; a word can come again. How
    much the first token attends to each in the last layer. Iterates over pairs of a word and its weight."""

    words: list[str]
    weights: Array  # [words] float32

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return zip(self.words, self.weights.tolist())


def word_weights(inputs: Inputs, *, model: str | None = None, prompt_name: str | None = None,
                 truncation: str | None = None, batch_size: int = 32) -> Job[list[WordWeights]]:
    """The weights of the words of each input, by attention. Takes a model with a WordPiece tokenizer.

    For BM42, drop stop words, stem, keep the largest weight of each stem, and take log(1 + weight) ** 0.5.
    prompt_name, truncation, batch_size: as in embed()."""
    outputs = pb.OutputSelection(word_weights=pb.WordWeightOutput())
    request = message(model, outputs, truncation, prompt_name=prompt_name)
    return Job(requests_of(inputs, request, batch_size, _words),
               lambda parts: [weighed for part in parts for weighed in part])


def _words(answer: pb.EncodeResponse) -> list[WordWeights]:
    sizes = [info.words for info in answer.sequences]
    weights = split_rows("weights of words", to_array(answer.words.weights), sizes, 1)
    if len(answer.words.words) != sum(sizes):
        raise InternalError(f"the answer has {len(answer.words.words)} words, its sequences have {sum(sizes)}")
    words = iter(answer.words.words)
    return [WordWeights(list(itertools.islice(words, len(part))), part) for part in weights]
