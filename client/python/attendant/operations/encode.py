# SPDX-License-Identifier: Apache-2.0
"""Hidden states, attention weights, and all else that one request can ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attendant.attention_maps import AttentionMaps
from attendant.errors import InternalError
from attendant.inputs import Input, Inputs, PaddedBatch, as_many, to_padded, to_sequence
from attendant.job import ENCODE, Job, Request
from attendant.operations.embed import pooled_output
from attendant.operations.requests import checked, message, rows, split_rows
from attendant.operations.timings import Timings
from attendant.operations.tokens import SparseVector, sparse_vectors, token_vectors
from attendant.tensors import Array, embedding_type, to_array, wire_type
from attendant.v1 import encoder_pb2 as pb


@dataclass(frozen=True, eq=False)
class EncodeResult:
    """Outputs that were not asked for are None. A list has an array for each sequence; of a PaddedBatch, hidden states are
    one array, [batch, seq, hidden] and [batch, hidden_layers, seq, hidden]."""

    model: str
    lengths: list[int]                        # tokens of each sequence
    truncated: list[bool]                     # whether it was cut
    last_hidden_state: list[Array] | Array | None  # [len, hidden] each
    hidden_states: list[Array] | Array | None      # [hidden_layers, len, hidden] each
    pooled: Array | None                      # [sequences, dims]
    pooled_scales: Array | None               # [sequences], of pooled_dtype="int8": an embedding is about this x its row
    sparse: list[SparseVector] | None         # without strings
    multi_vectors: list[Array] | None         # [vectors, dims] each
    attention: list[Array] | None             # [layers, heads, len, len] each; rows sum to 1
    token_ids: list[list[int]] | None
    tokens: list[list[str]] | None            # "[CLS]", "##ing"
    # [len, 2] int32 each: token i comes from the characters [begin, end) of its text, the prompt included; 0 to 0: a
    # special token. In a pair, tokens of the second text count from its beginning. None: token ids.
    token_offsets: list[Array | None] | None
    timings: Timings


def encode(inputs: Inputs, *, model: str | None = None, last_hidden_state: bool = True, pooled: bool = False,
           pooling: str | None = None, normalize: bool | None = None, dims: int = 0, hidden_layers: Sequence[int] = (),
           attention: bool = False, layers: Sequence[int] = (), heads: Sequence[int] = (), sparse: bool = False,
           multi_vectors: bool = False, token_ids: bool = False, tokens: bool = False, token_offsets: bool = False,
           prompt_name: str | None = None, truncation: str | None = None, dtype: str = "float32",
           pooled_dtype: str | None = None) -> Job[EncodeResult]:
    """Encodes inputs in one request.

    pooled: the embeddings too, made with `pooling`, `normalize` and `dims` as in embed(); in `pooled_dtype`, which is the
      `dtype` of embed(). None: in `dtype`.
    hidden_layers: hidden states between the layers; 0 is the output of the embeddings, i > 0 that of layer i.
    attention: the attention weights of `layers` and `heads`, from 0; none named means all.
    sparse, multi_vectors: as sparse() and multi_vectors() give them, for models that make them.
    token_ids, tokens: what each sequence became. token_offsets: where the tokens of texts come from, for models whose
      tokenizer tells.
    prompt_name, truncation: as in embed(). dtype: of all arrays but these, "float32", "float16" or "bfloat16"."""
    outputs = pb.OutputSelection(last_hidden_state=last_hidden_state, hidden_layers=hidden_layers, token_ids=token_ids,
                                 token_strings=tokens, token_offsets=token_offsets, dtype=wire_type("dtype", dtype))
    if pooled:
        outputs.pooled.CopyFrom(pooled_output(pooling, normalize, dims, embedding_type("pooled_dtype", pooled_dtype)))
    if attention:
        outputs.attention_weights.CopyFrom(pb.AttentionSelection(layers=layers, heads=heads))
    if sparse:
        outputs.sparse.SetInParent()
    if multi_vectors:
        outputs.multi_vector.SetInParent()
    if not (last_hidden_state or pooled or attention or hidden_layers or sparse or multi_vectors):
        raise ValueError("encode() needs an output: last_hidden_state, pooled, hidden_layers, attention, sparse or "
                         "multi_vectors")
    request = message(model, outputs, truncation, prompt_name=prompt_name, **_input_field(inputs))
    return Job.of(Request(ENCODE, request, checked(lambda answer: _result(answer, request), request)))


def attention_maps(text: Input, *, model: str | None = None, layers: Sequence[int] = (), heads: Sequence[int] = (),
                   ) -> Job[AttentionMaps]:
    """The attention weights of one input, with its tokens; `layers` and `heads` count from 0, none named means all. A
    notebook shows them as pictures."""
    outputs = pb.OutputSelection(attention_weights=pb.AttentionSelection(layers=layers, heads=heads),
                                 token_ids=True, token_strings=True)
    request = message(model, outputs, None, sequences=pb.Sequences(sequences=[to_sequence(text)]))

    def parse(answer: pb.EncodeResponse) -> AttentionMaps:
        weights = _attention(answer, request)[0]
        info = answer.sequences[0]
        labels = [string or f"#{number}" for string, number in zip(info.token_strings, info.token_ids)]
        return AttentionMaps(weights, labels, list(layers) or list(range(weights.shape[0])),
                             list(heads) or list(range(weights.shape[1])))

    return Job.of(Request(ENCODE, request, checked(parse, request)))


def _input_field(inputs: Inputs) -> dict[str, Any]:
    if isinstance(inputs, PaddedBatch):
        return {"padded": to_padded(inputs)}
    return {"sequences": pb.Sequences(sequences=list(map(to_sequence, as_many(inputs))))}


def _result(answer: pb.EncodeResponse, request: pb.EncodeRequest) -> EncodeResult:
    asked = request.outputs
    lengths = [info.tokens for info in answer.sequences]
    return EncodeResult(
        model=answer.model, lengths=lengths, truncated=[info.truncated for info in answer.sequences],
        last_hidden_state=_states(answer.last_hidden_state, lengths, request) if asked.last_hidden_state else None,
        hidden_states=_states(answer.hidden_states, lengths, request, 1) if asked.hidden_layers else None,
        pooled=rows("embeddings", answer.pooled, answer) if asked.HasField("pooled") else None,
        pooled_scales=rows("scales", answer.pooled_scales, answer, 1) if asked.pooled.dtype == pb.DTYPE_INT8 else None,
        sparse=sparse_vectors(answer, False) if asked.HasField("sparse") else None,
        multi_vectors=token_vectors(answer) if asked.HasField("multi_vector") else None,
        attention=_attention(answer, request) if asked.HasField("attention_weights") else None,
        token_ids=[list(info.token_ids) for info in answer.sequences] if asked.token_ids else None,
        tokens=[list(info.token_strings) for info in answer.sequences] if asked.token_strings else None,
        token_offsets=list(map(_offsets, answer.sequences)) if asked.token_offsets else None,
        timings=Timings.of(answer.timings))


def _offsets(info: pb.SequenceInfo) -> Array | None:
    if not info.HasField("offsets"):
        return None
    starts, ends = info.offsets.starts, info.offsets.ends
    if not len(starts) == len(ends) == info.tokens:
        raise InternalError(f"the answer has {len(starts)} starts and {len(ends)} ends of {info.tokens} tokens")
    return np.array([starts, ends], np.int32).T


def _states(tensor: pb.Tensor, lengths: list[int], request: pb.EncodeRequest, axis: int = 0) -> list[Array] | Array:
    """Views for each sequence of a ragged tensor, whose tokens lie along `axis`; padded: the batch, along `axis`, comes
    first. An axis before is that of the hidden layers."""
    values = to_array(tensor)
    if axis and values.shape[:1] != (len(request.outputs.hidden_layers),):
        raise InternalError(f"the answer has hidden states of shape {list(values.shape)} for "
                            f"{len(request.outputs.hidden_layers)} layers")
    if not request.HasField("padded"):
        return split_rows("hidden states", values, lengths, axis + 2, axis)
    if values.ndim != axis + 3 or values.shape[axis] != len(lengths):
        raise InternalError(f"the answer has hidden states of shape {list(values.shape)} for {len(lengths)} sequences")
    return np.moveaxis(values, axis, 0)


def _attention(answer: pb.EncodeResponse, request: pb.EncodeRequest) -> list[Array]:
    """[layers, heads, len, len] of each sequence; padded: [layers, heads, seq, seq]."""
    weights = list(map(to_array, answer.attention_weights))
    if len(weights) != len(answer.sequences):
        raise InternalError(f"the answer has attention weights of {len(weights)} sequences, not {len(answer.sequences)}")
    asked = request.outputs.attention_weights
    for values, info in zip(weights, answer.sequences):
        layers, heads, rows, columns = values.shape if values.ndim == 4 else (0, 0, 0, -1)
        if rows != columns or not (request.HasField("padded") or rows == info.tokens) or (
                len(asked.layers) not in (0, layers) or len(asked.heads) not in (0, heads)):
            raise InternalError(f"the answer has attention weights of shape {list(values.shape)} for {info.tokens} tokens")
    return weights
