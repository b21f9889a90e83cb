# SPDX-License-Identifier: Apache-2.0
"""Late chunking."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from attendant.choices import checked_count
from attendant.errors import InternalError
from attendant.inputs import Inputs
from attendant.job import Job
from attendant.operations.embed import pooled_output
from attendant.operations.requests import message, requests_of, split_rows
from attendant.tensors import Array, to_array, wire_type
from attendant.v1 import encoder_pb2 as pb


@dataclass(frozen=True, eq=False)
class Chunks:
    """The chunks of one input. Chunk i has the tokens from spans[i, 0] up to, and without, spans[i, 1]."""

    spans: Array       # [chunks, 2], integers
    embeddings: Array  # [chunks, dims]


def embed_chunks(inputs: Inputs, chunk_tokens: int, *, model: str | None = None, pooling: str | None = None,
                 normalize: bool | None = None, dims: int = 0, prompt_name: str | None = None, truncation: str | None = None,
                 dtype: str = "float32", batch_size: int = 32) -> Job[list[Chunks]]:
    """Embeds chunks of inputs, each in the light of its whole input: a model reads it once, then its chunks are pooled.

    chunk_tokens: most tokens in a chunk, special tokens counted. An input is cut into as few chunks as that allows,
        whose lengths differ by one token at most.
    pooling: "mean", "max", "mean_sqrt_len" or "weighted_mean"; None: as the model says, unless that is one token's.
    The other arguments are those of embed(); dtype: "float32", "float16" or "bfloat16"."""
    pooled = pooled_output(pooling, normalize, dims)
    pooled.chunk_tokens = checked_count("chunk_tokens", chunk_tokens)
    outputs = pb.OutputSelection(pooled=pooled, dtype=wire_type("dtype", dtype))
    request = message(model, outputs, truncation, prompt_name=prompt_name)
    requests = requests_of(inputs, request, batch_size, _chunks)
    return Job(requests, lambda parts: list(itertools.chain.from_iterable(parts)))


def _chunks(answer: pb.EncodeResponse) -> list[Chunks]:
    for info in answer.sequences:
        if len(info.spans.begins) != len(info.spans.ends):
            raise InternalError(f"the answer has {len(info.spans.begins)} begins and {len(info.spans.ends)} ends of spans")
    spans = [np.array(list(zip(info.spans.begins, info.spans.ends)), np.int64).reshape(-1, 2) for info in answer.sequences]
    rows = split_rows("embeddings of chunks", to_array(answer.pooled), list(map(len, spans)))
    return [Chunks(*each) for each in zip(spans, rows)]
