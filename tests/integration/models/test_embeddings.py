# SPDX-License-Identifier: Apache-2.0
"""Real embeddings and hidden states equal what sentence-transformers and transformers computed, by every way in."""

import numpy as np
import pytest
import tritonclient.grpc as triton

from harness import golden
from harness.attendant import array, ids, pb, request, texts

EMBEDDING_TOLERANCE = 1e-5
STATES_TOLERANCE = 2e-5


def assert_close(actual, expected, tolerance):
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= tolerance


@pytest.fixture
def kserve(server):
    with triton.InferenceServerClient(server.grpc) as connected:
        yield connected


def infer(kserve, model, output, **inputs):
    tensors = []
    for name, values in inputs.items():
        tensor = triton.InferInput(name, values.shape, "BYTES" if values.dtype == np.object_ else "INT64")
        tensor.set_data_from_numpy(values)
        tensors.append(tensor)
    return kserve.infer(model, tensors, outputs=[triton.InferRequestedOutput(output)]).as_numpy(output)


def test_each_text_alone(client, sentences):
    strings, _, expected = sentences
    for string, embedding in zip(strings, expected):
        assert_close(client.pooled("minilm", texts(string))[0], embedding, EMBEDDING_TOLERANCE)


@pytest.mark.parametrize("seed", range(3))
def test_mixed_batch_in_any_order(client, sentences, seed):
    strings, _, expected = sentences
    order = np.random.default_rng(seed).permutation(len(strings))
    pooled = client.pooled("minilm", texts(*(strings[i] for i in order)))
    assert_close(pooled, expected[order], EMBEDDING_TOLERANCE)


def test_text_and_ids_are_the_same_bits(client, sentences):
    strings, token_ids, expected = sentences
    from_ids = client.pooled("minilm", [ids(row) for row in token_ids])
    assert_close(from_ids, expected, EMBEDDING_TOLERANCE)
    assert from_ids.tobytes() == client.pooled("minilm", texts(*strings)).tobytes()


def test_text_becomes_the_tokenizers_ids(client, sentences):
    strings, token_ids, _ = sentences
    answer = client.encode(request("minilm", texts(*strings), token_ids=True))
    for info, expected in zip(answer.sequences, token_ids):
        assert list(info.token_ids) == list(expected)
        assert info.tokens == len(expected)


def test_long_text_is_cut_and_says_so(client, sentences):
    strings, token_ids, _ = sentences
    longest = max(range(len(strings)), key=lambda i: len(token_ids[i]))
    long_text = strings[longest] + " and so on" * 300
    infos = client.encode(request("minilm", texts("short", long_text))).sequences
    assert [info.truncated for info in infos] == [False, True]
    assert infos[1].tokens == client.models()["minilm"].max_text_tokens == 256


def test_pooling_normalization_and_dims(client, sentences):
    row = texts(sentences[0][2])
    states = client.states("minilm", row)[0]
    for pooling, expected in ((pb.POOLING_MEAN, states.mean(0)), (pb.POOLING_CLS, states[0]),
                              (pb.POOLING_MAX, states.max(0)), (pb.POOLING_LAST, states[-1])):
        plain = client.pooled("minilm", row, pooling=pooling, normalize=False)[0]
        assert_close(plain, expected, EMBEDDING_TOLERANCE)
        short = client.pooled("minilm", row, pooling=pooling, normalize=True, dims=64)[0]
        assert_close(short, expected[:64] / np.linalg.norm(expected[:64]), EMBEDDING_TOLERANCE)


def test_half_precision_answers(client, sentences):
    message = request("minilm", texts(*sentences[0]), pooled=pb.PooledOutput(), dtype=pb.DTYPE_F16)
    assert_close(array(client.encode(message).pooled).astype(np.float32), sentences[2], 1e-3)


def test_hidden_states_of_the_real_model(client):
    cases = [case for name, case in golden.cases("all-MiniLM-L6-v2").items() if name.startswith("states_")]
    states = client.states("minilm", [ids(case["token_ids"]) for case in cases])
    for actual, case in zip(states, cases):
        assert_close(actual, case["last_hidden_state"], STATES_TOLERANCE)


def unmasked(case):
    """A golden case as the request that makes it: (token ids, mask, segment ids), holes filled with a real token."""
    length = int(case["positions"][-1]) + 1
    token_ids, segments, mask = np.full(length, 3), np.zeros(length, int), np.zeros(length, bool)
    token_ids[case["positions"]], segments[case["positions"]] = case["token_ids"], case["segment_ids"]
    mask[case["positions"]] = True
    return token_ids, mask, segments


def test_hidden_states_masks_and_segments_of_a_random_model(client):
    cases = golden.cases("tiny_gelu")
    assert not unmasked(cases["mask_with_holes"])[1].all() and cases["segments"]["segment_ids"].any()
    states = client.states("tiny", [ids(*unmasked(case)) for case in cases.values()])
    for actual, case in zip(states, cases.values()):
        mask = unmasked(case)[1]
        assert_close(actual[mask], case["last_hidden_state"], STATES_TOLERANCE)
        assert not actual[~mask].any()


def test_fully_masked_sequence_is_zeros(client, sentences):
    other = ids(sentences[1][0])
    pooled = client.pooled("minilm", [other, ids([101, 102], mask=[False, False]), other])
    assert not pooled[1].any() and pooled[0].tobytes() == pooled[2].tobytes()
    assert not client.states("minilm", [ids([101, 102], mask=[False, False])])[0].any()


def test_padded_batch_with_mask_is_the_ragged_one(client, sentences):
    rows = sentences[1]
    ragged = [ids(row) for row in rows]
    seq = max(map(len, rows))
    padded_ids, mask = np.zeros((len(rows), seq), int), np.zeros((len(rows), seq), bool)
    for index, row in enumerate(rows):
        padded_ids[index, :len(row)], mask[index, :len(row)] = row, True
    padded = pb.PaddedBatch(batch=len(rows), seq=seq, token_ids=padded_ids.ravel(), attention_mask=mask.ravel())
    answer = client.encode(pb.EncodeRequest(model="minilm", padded=padded, outputs=pb.OutputSelection(
        last_hidden_state=True, pooled=pb.PooledOutput())))
    states = array(answer.last_hidden_state)
    assert states.shape == (len(rows), seq, 384)
    for actual, expected, row in zip(states, client.states("minilm", ragged), rows):
        assert actual[:len(row)].tobytes() == expected.tobytes()
        assert not actual[len(row):].any()
    assert array(answer.pooled).tobytes() == client.pooled("minilm", ragged).tobytes()


def test_kserve_text(kserve, client, sentences):
    strings, _, expected = sentences
    batch = np.array([[string.encode()] for string in strings], dtype=np.object_)
    together = infer(kserve, "minilm", "sentence_embedding", text=batch)
    assert_close(together, expected, EMBEDDING_TOLERANCE)
    assert together.tobytes() == client.pooled("minilm", texts(*strings)).tobytes()
    for row, embedding in zip(batch, expected):
        assert_close(infer(kserve, "minilm", "sentence_embedding", text=row[None])[0], embedding, EMBEDDING_TOLERANCE)


def test_kserve_ids_and_states(kserve, client, sentences):
    rows = sentences[1][:8]
    seq = max(map(len, rows))
    token_ids = np.array([np.pad(row, (0, seq - len(row))) for row in rows], dtype=np.int64)
    mask = np.array([np.arange(seq) < len(row) for row in rows], dtype=np.int64)
    pooled = infer(kserve, "minilm.ids", "sentence_embedding", input_ids=token_ids, attention_mask=mask)
    assert_close(pooled, sentences[2][:8], EMBEDDING_TOLERANCE)
    states = infer(kserve, "minilm.encoder", "last_hidden_state", input_ids=token_ids, attention_mask=mask)
    for actual, expected in zip(states, client.states("minilm", [ids(row) for row in rows])):
        assert actual[:len(expected)].tobytes() == expected.tobytes()
        assert not actual[len(expected):].any()
