# SPDX-License-Identifier: Apache-2.0
"""Requests and answers of the three names, by the stock client's own types."""

import numpy as np
import tritonclient.grpc as triton


def text_input(texts):
    tensor = triton.InferInput("text", [len(texts), 1], "BYTES")
    data = [text if isinstance(text, bytes) else text.encode() for text in texts]
    tensor.set_data_from_numpy(np.array(data, dtype=np.object_).reshape(-1, 1))
    return [tensor]


def int_input(name, rows, datatype="INT64"):
    values = np.asarray(rows, dtype=np.int64 if datatype == "INT64" else np.int32)
    tensor = triton.InferInput(name, list(values.shape), datatype)
    tensor.set_data_from_numpy(values)
    return tensor


def ids_inputs(ids, mask=None, segments=None, datatype="INT64"):
    inputs = [int_input("input_ids", ids, datatype)]
    if mask is not None:
        inputs.append(int_input("attention_mask", mask, datatype))
    if segments is not None:
        inputs.append(int_input("token_type_ids", segments, datatype))
    return inputs


def padded(sequences, length=None):
    """(ids, mask), both [batch, length]."""
    length = length or max(map(len, sequences))
    ids = np.zeros((len(sequences), length), np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = 1
    return ids, mask


def mean_pooled(states, mask):
    """sentence-transformers' recipe for this model: mean of the unmasked rows, normalized."""
    mean = (states * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)
