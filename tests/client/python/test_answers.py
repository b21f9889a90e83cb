# SPDX-License-Identifier: Apache-2.0
"""Answers whose sizes disagree are no results."""

import numpy as np
import pytest

from attendant import InternalError, PaddedBatch, operations
from attendant.v1 import attention_pb2 as attention_pb
from attendant.v1 import encoder_pb2 as pb


def ones(*shape):
    return pb.Tensor(dtype=pb.DTYPE_F32, shape=shape, data=np.ones([max(size, 0) for size in shape], "<f4").tobytes())


def raises(job, answer, error):
    """Checks that the job of one request refuses the answer."""
    request, = job.requests
    with pytest.raises(InternalError, match=error):
        request.parse(answer)


@pytest.mark.parametrize("wrong, asked, error", [
    ({"last_hidden_state": ones(7, 4)}, {}, r"hidden states of shape \[7, 4\], its sequences have \[5, 5\]"),
    ({"last_hidden_state": ones(10)}, {}, r"hidden states of shape \[10\]"),
    ({"last_hidden_state": ones(3, 5, 4)}, {"inputs": PaddedBatch(np.ones((2, 5), int))},
     r"hidden states of shape \[3, 5, 4\] for 2 sequences"),
    ({"hidden_states": ones(1, 7, 4)}, {"hidden_layers": [0]}, r"hidden states of shape \[1, 7, 4\]"),
    ({"hidden_states": ones(1, 10, 4)}, {"hidden_layers": [0, 1]}, r"hidden states of shape \[1, 10, 4\] for 2 layers"),
    ({"pooled": ones(1, 4)}, {"pooled": True}, r"embeddings of shape \[1, 4\] for 2 sequences"),
    ({"pooled_scales": ones(1)}, {"pooled": True, "pooled_dtype": "int8"}, r"scales of shape \[1\] for 2 sequences"),
    ({"attention_weights": []}, {"attention": True}, "attention weights of 0 sequences, not 2"),
    ({"attention_weights": [ones(1, 1, 5, 5), ones(1, 1, 5, 4)]}, {"attention": True}, r"weights of shape \[1, 1, 5, 4\] for 5"),
    ({"attention_weights": [ones(1, 1, 5, 5)] * 2}, {"attention": True, "layers": [0, 1]}, "attention weights of shape"),
    ({"sequences": [pb.SequenceInfo(tokens=12), pb.SequenceInfo(tokens=-2)]}, {}, r"its sequences have \[12, -2\]"),
    ({"sequences": [pb.SequenceInfo(tokens=5, token_ids=[1])] * 2}, {"token_ids": True}, "1 token_ids of 5 tokens"),
    ({"sequences": [pb.SequenceInfo(tokens=5)] * 2}, {"tokens": True}, "0 token_strings of 5 tokens"),
])
def test_an_answer_of_encode_whose_sizes_disagree(wrong, asked, error):
    parts = {"last_hidden_state": ones(10, 4), "hidden_states": ones(1, 10, 4), "pooled": ones(2, 4),
             "pooled_scales": ones(2), "attention_weights": [ones(1, 1, 5, 5)] * 2,
             "sequences": [pb.SequenceInfo(tokens=5)] * 2}
    arguments = {"inputs": ["hello", "world"], **asked}
    raises(operations.encode(**arguments), pb.EncodeResponse(**{**parts, **wrong}), error)


@pytest.mark.parametrize("answer, error", [
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=1, token_ids=[7], token_strings=["a"])]), "of 0 sequences, not 1"),
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=1, token_ids=[7], token_strings=["a"])],
                       attention_weights=[ones(1, 1, 2, 2)]), r"of shape \[1, 1, 2, 2\] for 1 tokens"),
])
def test_attention_maps_of_another_size(answer, error):
    raises(operations.attention_maps("a"), answer, error)


@pytest.mark.parametrize("answer, job, error", [
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=2, mask_tokens=[0])], fill_mask=pb.MaskPredictions(
        scores=ones(1, 2), token_ids=[7])), operations.fill_mask("a"), "0 token_strings of 2 tokens"),
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=1, token_strings=["a"], mask_tokens=[0])],
                       fill_mask=pb.MaskPredictions(scores=ones(1, 2), token_ids=[7], token_strings=["a"])),
     operations.fill_mask("a"), "1 token ids of masks for 2 values"),
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=1, token_strings=["a"], sparse_weights=1)],
                       sparse=pb.SparseVectors(ids=[7], weights=ones(1))),
     operations.sparse("a", tokens=True), "0 tokens of sparse vectors for 1 values"),
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=1, spans=pb.TokenSpans(begins=[0], ends=[]))], pooled=ones(0, 4)),
     operations.embed_chunks("a", 1), "1 begins and 0 ends of spans"),
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=1)], pooled=ones()),
     operations.embed_chunks("a", 1), r"embeddings of chunks of shape \[\]"),
    (pb.EncodeResponse(sequences=[pb.SequenceInfo(tokens=1, token_strings=["a"])], token_scores=ones(2, 1, 1)),
     operations.classify_tokens("a", labels=["x"]), r"scores of tokens of shape \[2, 1, 1\]"),
])
def test_heads_on_tokens_whose_sizes_disagree(answer, job, error):
    raises(job, answer, error)


@pytest.mark.parametrize("answer, arguments, error", [
    (attention_pb.AttendResponse(output=ones(1, 2, 4)), {}, r"output of shape \[1, 2, 4\] for a query of shape \[1, 3, 4\]"),
    (attention_pb.AttendResponse(output=ones(1)), {}, r"output of shape \[1\]"),
    (attention_pb.AttendResponse(output=ones(1, 3, 4), weights=ones(3)), {"weights": "averaged"}, r"weights of shape \[3\]"),
    (attention_pb.AttendResponse(output=ones(1, 3, 4), weights=ones(1, 2, 3)), {"weights": "averaged"}, "weights of shape"),
    (attention_pb.AttendResponse(output=ones(2, 4)), {"query": [np.ones((3, 4))]}, r"output of shape \[2, 4\]"),
    (attention_pb.AttendResponse(output=ones(3, 4), weights=ones(8)), {"query": [np.ones((3, 4))], "weights": "averaged"},
     "8 weights for queries and keys of"),
])
def test_answers_of_attend_whose_sizes_disagree(answer, arguments, error):
    raises(operations.attend(**{"query": np.ones((1, 3, 4)), **arguments}), answer, error)
