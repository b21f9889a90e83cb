# SPDX-License-Identifier: Apache-2.0
"""What the server has, and whether it serves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from attendant.choices import checked_text, word_of
from attendant.job import LIST_MODELS, Job, Request, Rpc
from attendant.v1 import encoder_pb2 as pb
from attendant.v1.messages import load

_health_pb: Any = load("grpc/health/v1/health.proto")
_CHECK = Rpc("/grpc.health.v1.Health/Check", _health_pb["HealthCheckResponse"])


@dataclass(frozen=True)
class Model:
    """A model, or a version of one. What follows `error` is set once it has loaded, and stays while it is idle or unloaded."""

    name: str
    version: int
    state: str              # "loading", "ready", "failed", "draining", "unloaded", "idle"
    error: str              # why it failed to load
    backend: str            # "cpu", "cuda", "reference"
    isa: str                # instruction set or GPU: "amx"
    dtype: str              # of the computation: "f32", "bf16", "f16", "int8", "fp8"
    layers: int
    heads: int
    hidden: int
    vocab: int
    max_sequence_tokens: int  # the longest sequence of ids
    max_text_tokens: int      # where texts are cut
    pooling: str            # "mean", "cls", ...; "cls+mean" of both; "unspecified" if the model names none
    normalize: bool         # embeddings have length 1
    labels: tuple[str, ...]  # of a classifier; a reranker has one
    embedding_dims: int       # values of an embedding
    tasks: tuple[str, ...]    # further outputs: "scores", "sparse", "fill_mask", "token_scores", "multi_vector"
    token_labels: tuple[str, ...]  # of classify_tokens()
    prompt_names: tuple[str, ...]  # prompts that a request can name
    default_prompt_name: str  # "": requests that name no prompt have none

    @property
    def serves(self) -> bool:
        """It answers requests; an idle one is loaded for them."""
        return self.state in ("ready", "idle")


_LISTS = ("labels", "tasks", "token_labels", "prompt_names")


def _model(info: pb.ModelInfo) -> Model:
    words: dict[str, Any] = {"state": word_of(pb.ModelState.DESCRIPTOR, info.state),
                             "pooling": "+".join(word_of(pb.Pooling.DESCRIPTOR, pooling)
                                                 for pooling in info.poolings or [info.pooling]),
                             **{name: tuple(getattr(info, name)) for name in _LISTS}}
    others = (name for name in Model.__dataclass_fields__ if name not in words)
    return Model(**{name: getattr(info, name) for name in others}, **words)


def list_models() -> Request[list[Model]]:
    return Request(LIST_MODELS, pb.ListModelsRequest(), lambda answer: list(map(_model, answer.models)))


def models() -> Job[list[Model]]:
    """The server's models in every state."""
    return Job.of(list_models())


def answering(known: Iterable[Model], name: str, version: str) -> Model | None:
    """The version of a model that answers requests which name this one; "": the highest that serves, or else the highest."""
    found = [model for model in known if model.name == name and version in ("", str(model.version))]
    return max(found, key=lambda model: (model.serves, model.version), default=None)


def health(service: str = "") -> Job[bool]:
    """Whether the server, or the model named `service`, serves. NotFoundError: there is no such model."""
    status = _health_pb["HealthCheckResponse"].SERVING
    return Job.of(Request(_CHECK, _health_pb["HealthCheckRequest"](service=checked_text("service", service)),
                          lambda answer: bool(answer.status == status)))
