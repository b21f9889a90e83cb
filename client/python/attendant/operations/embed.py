# SPDX-License-Identifier: Apache-2.0
"""Embeddings."""

from __future__ import annotations

from attendant.choices import number_of
from attendant.inputs import Inputs, is_single
from attendant.job import Job
from attendant.operations.requests import join_row, join_rows, message, requests_of, rows
from attendant.tensors import Array, embedding_type
from attendant.v1 import encoder_pb2 as pb


def pooled_output(pooling: str | None, normalize: bool | None, dims: int,
                  dtype: pb.DType = pb.DTYPE_UNSPECIFIED) -> pb.PooledOutput:
    number = number_of(pb.Pooling.DESCRIPTOR, "pooling", pooling)
    return pb.PooledOutput(pooling=number, normalize=normalize, dims=dims, dtype=dtype)


def embed(inputs: Inputs, *, model: str | None = None, pooling: str | None = None, normalize: bool | None = None,
          dims: int = 0, prompt_name: str | None = None, truncation: str | None = None, dtype: str = "float32",
          batch_size: int = 32) -> Job[Array]:
    """Embeds any number of inputs; several requests, some at the same time, when there are many.

    inputs: texts, pairs, token ids; any iterable, which is read as requests are sent.
    pooling: "mean", "cls", "max", "last", "mean_sqrt_len", "weighted_mean"; None, like `normalize`: as the model says.
    dims: keep the first `dims` dimensions, before normalizing; 0 keeps all.
    prompt_name: the prompt of the model that goes before each text; None: the model's default; "": no prompt.
    truncation: None cuts texts at the model's limit; "right" and "left" ids too; "none" refuses what is too long.
    dtype: on the wire, "float32", "float16" or "bfloat16"; bfloat16 comes as float32. Or "int8": int8, each embedding on
      its own scale, of which encode() tells. Or a bit for each value, 1 above 0, eight to a byte with the first in the
      highest bit: "ubinary" as uint8, "binary" the same less 128 as int8; then there are dims / 8 bytes.
    batch_size: most inputs in a request. The server makes batches of its own, without padding: no need to sort.

    Returns [inputs, dims]; for a single text or TokenIds [dims]; read-only when it took one request."""
    pooled = pooled_output(pooling, normalize, dims, embedding_type("dtype", dtype))
    request = message(model, pb.OutputSelection(pooled=pooled), truncation, prompt_name=prompt_name)
    requests = requests_of(inputs, request, batch_size, lambda answer: rows("embeddings", answer.pooled, answer))
    return Job(requests, join_row if is_single(inputs) else join_rows)
