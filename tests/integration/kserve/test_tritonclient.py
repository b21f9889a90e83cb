# SPDX-License-Identifier: Apache-2.0
"""The stock tritonclient, as its users write it, against the real model."""

import asyncio
import queue

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio

from harness.attendant import DEADLINE
from kserve_tensors import ids_inputs, mean_pooled, padded, text_input

HIDDEN = 384
EMBEDDING = "sentence_embedding"
STATES = "last_hidden_state"


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.grpc) as connected:
        yield connected


def embed(client, texts):
    return client.infer("minilm", text_input(texts)).as_numpy(EMBEDDING)


def test_liveness_and_readiness(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    for name in ("minilm", "minilm.ids", "minilm.encoder", "tiny.ids", "tiny.encoder"):
        assert client.is_model_ready(name), name
    assert not client.is_model_ready("nobody")
    assert not client.is_model_ready("tiny"), "a model without tokenizer takes no text"


def test_server_metadata(client):
    metadata = client.get_server_metadata()
    assert metadata.name == "attendant"
    assert metadata.version
    assert "statistics" in metadata.extensions


def test_repository_index(client):
    index = {model.name: model for model in client.get_model_repository_index().models}
    assert {"minilm", "minilm.ids", "minilm.encoder", "tiny.ids", "tiny.encoder"} <= index.keys()
    assert index["minilm"].state == "READY"


@pytest.mark.parametrize("name", ["minilm", "minilm.ids", "minilm.encoder"])
def test_metadata_and_config_agree(client, name):
    metadata = client.get_model_metadata(name)
    config = client.get_model_config(name).config
    assert metadata.name == config.name == name
    assert list(metadata.versions) == ["1"]
    assert metadata.platform == config.platform
    assert config.max_batch_size > 0
    for tensors, configured in ((metadata.inputs, config.input), (metadata.outputs, config.output)):
        assert [tensor.name for tensor in tensors] == [entry.name for entry in configured]
        for tensor, entry in zip(tensors, configured):
            assert list(tensor.shape) == [-1, *entry.dims]


def test_text_embeddings_are_the_golden_ones(client, sentences):
    texts, _, expected = sentences
    assert np.abs(embed(client, texts) - expected).max() <= 1e-5


def test_ids_embeddings_are_the_golden_ones_and_the_texts(client, sentences):
    texts, token_ids, expected = sentences
    ids, mask = padded(token_ids)
    by_ids = client.infer("minilm.ids", ids_inputs(ids, mask)).as_numpy(EMBEDDING)
    assert np.abs(by_ids - expected).max() <= 1e-5
    assert np.array_equal(by_ids, embed(client, texts)), "the same bits by text and by ids"


def test_pooled_encoder_states_are_the_embedding(client, sentences):
    _, token_ids, expected = sentences
    ids, mask = padded(token_ids[:16])
    states = client.infer("minilm.encoder", ids_inputs(ids, mask)).as_numpy(STATES)
    assert states.shape == (*ids.shape, HIDDEN)
    assert not states[mask == 0].any(), "padding comes back as zero rows"
    assert np.abs(mean_pooled(states, mask) - expected[:16]).max() <= 1e-5


def test_padding_changes_no_bit(client, sentences):
    token_ids = sentences[1][0]
    alone = client.infer("minilm.ids", ids_inputs([token_ids])).as_numpy(EMBEDDING)
    ids, mask = padded([token_ids, sentences[1][1]], length=200)
    ids[0, len(token_ids):] = 30000  # what stands in the padding does not matter
    batched = client.infer("minilm.ids", ids_inputs(ids, mask)).as_numpy(EMBEDDING)
    assert np.array_equal(batched[0], alone[0])


def test_masks_with_holes(client):
    ids = np.array([[101, 2023, 2003, 1037, 7953, 102]])
    mask = np.array([[1, 1, 0, 1, 0, 1]])
    states = client.infer("minilm.encoder", ids_inputs(ids, mask)).as_numpy(STATES)
    assert not states[mask == 0].any()
    ids_elsewhere = np.where(mask == 0, 999, ids)
    again = client.infer("minilm.encoder", ids_inputs(ids_elsewhere, mask)).as_numpy(STATES)
    assert np.array_equal(states, again), "a masked token is never attended to"
    closed_up = client.infer("minilm.encoder", ids_inputs(ids[:, mask[0] == 1])).as_numpy(STATES)
    assert np.abs(states[mask == 1] - closed_up[0]).max() > 1e-3, "positions keep their place"
    embedding = client.infer("minilm.ids", ids_inputs(ids, mask)).as_numpy(EMBEDDING)
    assert np.abs(mean_pooled(states, mask) - embedding).max() <= 1e-5


def test_segments_and_narrow_integers(client):
    ids, segments = [[101, 2023, 102, 2003, 102]], [[0, 0, 0, 1, 1]]
    plain = client.infer("minilm.ids", ids_inputs(ids)).as_numpy(EMBEDDING)
    wide = client.infer("minilm.ids", ids_inputs(ids, segments=segments)).as_numpy(EMBEDDING)
    narrow = client.infer("minilm.ids", ids_inputs(ids, segments=segments, datatype="INT32")).as_numpy(EMBEDDING)
    assert np.array_equal(wide, narrow)
    assert not np.array_equal(wide, plain)


def test_requested_output_id_version_and_parameters(client):
    result = client.infer("minilm", text_input(["hello"]), model_version="1", request_id="mine",
                          outputs=[triton.InferRequestedOutput(EMBEDDING)], priority=1, timeout=60_000_000,
                          client_timeout=DEADLINE, parameters={"trace": "x"})
    response = result.get_response()
    assert (response.id, response.model_name, response.model_version) == ("mine", "minilm", "1")
    assert np.array_equal(result.as_numpy(EMBEDDING), embed(client, ["hello"]))


def test_async_infer(client):
    answers = queue.Queue()
    texts = [f"sentence number {i}" for i in range(32)]
    for i, text in enumerate(texts):
        client.async_infer("minilm", text_input([text]),
                           lambda result, error, i=i: answers.put((i, result, error)))
    found = {}
    for _ in texts:
        i, result, error = answers.get(timeout=DEADLINE)
        assert error is None
        found[i] = result.as_numpy(EMBEDDING)[0]
    assert np.array_equal(np.stack([found[i] for i in range(len(texts))]), embed(client, texts))


def test_aio_client(server, client):
    async def run():
        async with triton_aio.InferenceServerClient(server.grpc) as connected:
            assert await connected.is_model_ready("minilm")
            results = await asyncio.gather(*(connected.infer("minilm", text_input([text])) for text in "abc"))
            return np.concatenate([result.as_numpy(EMBEDDING) for result in results])
    assert np.array_equal(asyncio.run(run()), embed(client, list("abc")))


def test_stream_infer_echoes_ids_on_errors_too(server, client):
    answers = queue.Queue()
    with triton.InferenceServerClient(server.grpc) as streaming:
        streaming.start_stream(lambda result, error: answers.put((result, error)))
        for i in range(100):
            ids = [[101, 10_000_000 if i == 50 else 1000 + i, 102]]
            streaming.async_stream_infer("minilm.ids", ids_inputs(ids), request_id=str(i),
                                         enable_empty_final_response=True)
        found, errors = {}, []
        for _ in range(100):
            result, error = answers.get(timeout=DEADLINE)
            if error is not None:
                errors.append(str(error))
                continue
            response = result.get_response()
            assert response.parameters["triton_final_response"].bool_param
            found[int(response.id)] = result.as_numpy(EMBEDDING)
        streaming.stop_stream()
    assert len(errors) == 1 and "10000000" in errors[0]
    assert found.keys() == set(range(100)) - {50}
    assert np.array_equal(found[7], client.infer("minilm.ids", ids_inputs([[101, 1007, 102]])).as_numpy(EMBEDDING))


def statistics(client, name):
    return client.get_inference_statistics(name).model_stats[0]


def test_statistics_follow_the_requests(client):
    before = statistics(client, "minilm.encoder")
    for _ in range(3):
        client.infer("minilm.encoder", ids_inputs([[101, 102]] * 4))
    after = statistics(client, "minilm.encoder")
    assert int(after.version) == 1
    assert after.inference_count - before.inference_count == 12
    assert after.execution_count - before.execution_count == 3
    for phase in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        grown = getattr(after.inference_stats, phase).count - getattr(before.inference_stats, phase).count
        assert grown == 3, phase
    sizes = {batch.batch_size: batch.compute_infer.count for batch in after.batch_stats}
    assert sizes[4] >= 3
    names = {model.name for model in client.get_inference_statistics().model_stats}
    assert {"minilm", "minilm.ids", "minilm.encoder"} <= names
