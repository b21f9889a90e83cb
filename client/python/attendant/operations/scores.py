# SPDX-License-Identifier: Apache-2.0
"""Rerankers and classifiers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from attendant.choices import number_of
from attendant.errors import InternalError, InvalidArgumentError
from attendant.inputs import Inputs, is_table
from attendant.job import Job, Request
from attendant.operations.requests import join_rows, message, requests_of, rows
from attendant.operations.status import Model, answering, list_models
from attendant.tensors import Array
from attendant.v1 import encoder_pb2 as pb

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Ranked:
    """A passage; `index` is its place among those given."""

    index: int
    score: float
    text: str


class Label(NamedTuple):
    label: str
    score: float

    @staticmethod
    def ranked(labels: tuple[str, ...], scores: Array) -> list[Label]:
        """The labels with their scores, the best first."""
        return [Label(labels[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")]


@dataclass(frozen=True, eq=False)
class Classification:
    """labels: [labels]; scores: [inputs, labels]. Item i has the labels of input i, the best first."""

    labels: tuple[str, ...]
    scores: Array

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: int) -> list[Label]:
        return Label.ranked(self.labels, self.scores[index])

    def __iter__(self) -> Iterator[list[Label]]:
        return (self[i] for i in range(len(self)))


def _requests(inputs: Inputs, model: str | None, activation: str | None, truncation: str | None, batch_size: int,
              pair_truncation: str | None, prompt_name: str | None) -> Iterator[Request[Array]]:
    """Their results are [inputs, labels]."""
    cut = number_of(pb.PairTruncation.DESCRIPTOR, "pair_truncation", pair_truncation)
    number = number_of(pb.ScoreActivation.DESCRIPTOR, "activation", activation)
    outputs = pb.OutputSelection(scores=pb.ScoreOutput(activation=number))
    request = message(model, outputs, truncation, pair_truncation=cut, prompt_name=prompt_name)
    return requests_of(inputs, request, batch_size, lambda answer: rows("scores", answer.scores, answer))


def rerank(query: str, passages: Iterable[str], *, model: str | None = None, top_k: int | None = None,
           activation: str | None = None, truncation: str | None = None, pair_truncation: str | None = None,
           prompt_name: str | None = None, batch_size: int = 32) -> Job[list[Ranked]]:
    """Scores how well each passage answers the query; the best first. Takes a reranker, or a model that has vectors of
    tokens (ColBERT, BGE-M3), whose scores are sums (MaxSim) without an activation.

    top_k: how many to return; None: all.
    activation: "none", "sigmoid", "softmax"; None: as the model says.
    pair_truncation: the text that is cut, "only_first", the query, or "only_second", the passage; None: the longer one first.
    prompt_name: of a reranker with a chat template, its instruction; None: the model's default.
    InvalidArgumentError: the model is no reranker, which has one label."""
    if isinstance(passages, str) or is_table(passages):
        raise TypeError(f"passages are {'one text' if isinstance(passages, str) else 'a mapping or a table'}: give a list of texts")
    if top_k is not None and top_k < 0:
        raise ValueError(f"top_k is {top_k}: it must be at least 0, or None")
    texts = list(passages)
    pairs = [(query, text) for text in texts]

    def rank(parts: list[Array]) -> list[Ranked]:
        scores = join_rows(parts)
        if parts and scores.shape[1] != 1:
            raise InvalidArgumentError(f"the model is no reranker: it has {scores.shape[1]} labels, not 1")
        scores = scores.ravel()
        return [Ranked(int(i), float(scores[i]), texts[i]) for i in np.argsort(-scores, kind="stable")[:top_k]]

    return Job(_requests(pairs, model, activation, truncation, batch_size, pair_truncation, prompt_name), rank)


def classify(inputs: Inputs, *, model: str | None = None, labels: Sequence[str] | None = None,
             activation: str | None = None, truncation: str | None = None, pair_truncation: str | None = None,
             batch_size: int = 32) -> Job[Classification]:
    """The scores of a classifier's labels for texts or pairs.

    labels: their names. None asks the server at the same time, which takes an API key of the group `read`.
    activation: "none", "sigmoid", "softmax"; None: as the model says.
    pair_truncation: the text of a pair that is cut, "only_first" or "only_second"; None: the longer one first. It
      says nothing about single texts."""
    requests = _requests(inputs, model, activation, truncation, batch_size, pair_truncation, None)
    return with_labels(labels, lambda known: known.labels, requests, lambda scores: [scores], _classification)


def with_labels(labels: Sequence[str] | None, labels_of: Callable[[Model], tuple[str, ...]],
                requests: Iterator[Request[P]], scores_of: Callable[[P], Iterable[Array]],
                make: Callable[[tuple[str, ...], list[P]], T]) -> Job[T]:
    """The job of requests whose results have scores, each [.., labels]. `make` gets the names of the labels, those given or
    the model's, and the results. InternalError: there are more or fewer labels than scores.

    The server is asked for labels beside the requests, and once more where that was too early: a model that was loading has
    none, one that was idle is loaded anew."""
    if isinstance(labels, str):
        raise TypeError("labels is one text: give a list of them")

    def counts(parts: list[P]) -> Iterator[int]:
        return (scores.shape[-1] for part in parts for scores in scores_of(part))

    def checked(names: tuple[str, ...], parts: list[P]) -> T:
        for count in counts(parts):
            if count != len(names):
                raise InternalError(f"the answer has {count} scores for the labels {names}")
        return make(names, parts)

    if labels is not None:
        names = tuple(labels)
        return Job(requests, lambda parts: checked(names, parts))
    sent: list[pb.EncodeRequest] = []  # the last one; a client puts in which model it asks

    def noted() -> Iterator[Request[P]]:
        for request in requests:
            sent[:] = [request.message]
            yield request

    def named(listed: list[Model]) -> tuple[Model | None, tuple[str, ...]]:
        model = answering(listed, sent[0].model, sent[0].model_version) if sent else None
        return model, labels_of(model) if model else ()

    def join(results: list[Any]) -> T:
        listed, *parts = results
        return checked(named(listed)[1], parts)

    def again(results: list[Any]) -> Job[T] | None:
        listed, *parts = results
        model, names = named(listed)
        if not parts or model is not None and model.state == "ready" and set(counts(parts)) <= {len(names)}:
            return None
        return Job([list_models()], lambda listed: join([*listed, *parts]))

    return Job(itertools.chain([list_models()], noted()), join, again)


def _classification(labels: tuple[str, ...], parts: list[Array]) -> Classification:
    return Classification(labels, join_rows(parts))
