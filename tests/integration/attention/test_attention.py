# SPDX-License-Identifier: Apache-2.0
"""attendant.v1.Attention through the wire: every kind held to its formula, masks, layouts, number formats, modules."""

import itertools
import re
import time

import grpc
import numpy as np
import pytest

from harness import attendant, attention, settings
from harness.attention import AVERAGED, PER_HEAD, pb

F32, BF16 = 1e-5, 1e-2


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def attend(server):
    with attention.Client(server.grpc) as client:
        yield client


def operands(rng, batch=2, heads=3, queries=7, keys=11, dim=8, value_dim=6):
    return [rng.standard_normal(shape).astype(np.float32)
            for shape in ((batch, heads, queries, dim), (batch, heads, keys, dim), (batch, heads, keys, value_dim))]


def close(actual, expected, tolerance=F32):
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= tolerance * max(1, np.abs(expected).max())


@pytest.mark.parametrize("algorithm", [pb.ATTENTION_ALGORITHM_UNSPECIFIED, pb.ATTENTION_ALGORITHM_FLASH,
                                       pb.ATTENTION_ALGORITHM_SCORES])
@pytest.mark.parametrize("causal", [False, True])
def test_scaled_dot_product(attend, rng, algorithm, causal):
    query, key, value = operands(rng)
    masks = [attention.causal_mask(7, 11)] if causal else []
    for scale in (None, 0.3):
        message = attention.request(query, key, value, causal=causal,
                                    parameters=("scaled_dot_product", {"algorithm": algorithm}))
        if scale is not None:
            message.scale = scale
        close(attend.output(message), attention.attend(query, key, value, masks=masks, scale=scale)[0])


def test_masks(attend, rng):
    query, key, value = operands(rng)
    truth = rng.random((2, 3, 7, 11)) < 0.6
    truth[0, 1, 2] = False  # attends to nothing
    padding = np.arange(11) < np.array([[11], [6]])
    for mask in (truth, truth[:1], truth[:, :1], truth[0, 0], truth[:, 0],
                 rng.standard_normal((7, 11)).astype(np.float32),
                 np.where(truth[0, 0], 0, -1e9).astype(np.float32), np.where(truth, 0, -np.inf).astype(np.float32)):
        full = mask[:, None] if mask.ndim == 3 else mask
        expected, weights = attention.attend(query, key, value, masks=[full, padding[:, None, None]])
        answer = attend.attend(attention.request(query, key, value, mask=mask, padding=padding, weights=PER_HEAD))
        close(attention.array(answer.output), expected)
        close(attention.array(answer.weights), weights)
    answer = attend.attend(attention.request(query, key, value, mask=truth, weights=PER_HEAD))
    assert not attention.array(answer.output)[0, 1, 2].any()
    assert not attention.array(answer.weights)[0, 1, 2].any()


def test_weights(attend, rng):
    query, key, value = operands(rng)
    _, weights = attention.attend(query, key, value)
    for wanted, expected in ((PER_HEAD, weights), (AVERAGED, weights.mean(1))):
        close(attention.array(attend.attend(attention.request(query, key, value, weights=wanted)).weights), expected)
    assert not attend.attend(attention.request(query, key, value)).HasField("weights")
    flat = attend.attend(attention.request(query[:, 0], key[:, 0], value[:, 0], weights=PER_HEAD))
    close(attention.array(flat.weights), weights[:, 0])


def test_ragged_answers_like_each_sequence_alone(attend, rng):
    lengths, key_lengths = [3, 1, 6], [4, 9, 2]
    query, key, value = (rng.standard_normal((sum(n), 2, 8)).astype(np.float32)
                         for n in (lengths, key_lengths, key_lengths))
    answer = attend.attend(attention.request(query, key, value, query_lengths=lengths, key_lengths=key_lengths,
                                             weights=PER_HEAD))
    output, weights = attention.array(answer.output), attention.array(answer.weights)
    assert output.shape == query.shape
    offset = 0
    starts = np.cumsum([0, *lengths]), np.cumsum([0, *key_lengths])
    for i in range(3):
        q, k, v = (operand[first[i]:first[i + 1]].swapaxes(0, 1)[None]
                   for operand, first in ((query, starts[0]), (key, starts[1]), (value, starts[1])))
        expected, expected_weights = attention.attend(q, k, v)
        close(output[starts[0][i]:starts[0][i + 1]].swapaxes(0, 1)[None], expected)
        close(weights[offset:offset + expected_weights.size].reshape(expected_weights.shape), expected_weights)
        offset += expected_weights.size
    assert offset == weights.size


def test_self_attention_needs_the_query_only(attend, rng):
    query = rng.standard_normal((2, 5, 8)).astype(np.float32)
    close(attend.output(attention.request(query)), attention.attend(query, query, query)[0])


def rounded(array, *formats):
    """What is left of the numbers after they were sent in these formats."""
    for name in formats:
        array = attention.array(attention.tensor(array, name))
    return array


def test_number_formats(attend, rng):
    operands_f32 = operands(rng)
    wire = {"f32": attention.common.DTYPE_F32, "bf16": attention.common.DTYPE_BF16, "f16": attention.common.DTYPE_F16}
    for sent, wanted, computed in itertools.product(wire, wire, ("f32", "bf16")):
        message = attention.request(*operands_f32, dtype=sent, compute_dtype=wire[computed])
        message.dtype = wire[wanted]
        answer = attend.attend(message).output
        assert answer.dtype == wire[wanted]
        expected, _ = attention.attend(*(rounded(operand, sent, computed) for operand in operands_f32))
        half = {"f32": F32, "f16": 1e-3, "bf16": BF16}
        close(attention.array(answer), expected, max(half[wanted], half[computed]))


def test_additive(attend, rng):
    query, key, value = (operand[:, 0] for operand in operands(rng))
    wq, wk, v, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 8), (5, 8), (5,), (5,)))
    hidden = (query @ wq.T)[:, :, None] + (key @ wk.T)[:, None]
    for bias in (None, b):
        scores = np.tanh(hidden + (0 if bias is None else bias)) @ v
        parameters = {"query_weight": wq, "key_weight": wk, "score_weight": v}
        if bias is not None:
            parameters["bias"] = bias
        answer = attend.attend(attention.request(query, key, value, weights=PER_HEAD,
                                                 parameters=("additive", parameters)))
        expected, weights = attention.attend(query, key, value, scores=scores)
        close(attention.array(answer.output), expected)
        close(attention.array(answer.weights), weights)


def test_luong(attend, rng):
    query, key, value = (operand[:, 0] for operand in operands(rng))
    general, concat, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 8), (5, 16), (5,)))
    both = np.concatenate(np.broadcast_arrays(query[:, :, None], key[:, None]), -1)
    for parameters, scores in (({"score": pb.LUONG_SCORE_DOT}, query @ key.swapaxes(1, 2)),
                               ({"score": pb.LUONG_SCORE_GENERAL, "weight": general},
                                query @ general @ key.swapaxes(1, 2)),
                               ({"score": pb.LUONG_SCORE_CONCAT, "weight": concat, "score_weight": v},
                                np.tanh(both @ concat.T) @ v)):
        close(attend.output(attention.request(query, key, value, parameters=("luong", parameters))),
              attention.attend(query, key, value, scores=scores)[0], 1e-4)


def test_local_and_strided(attend, rng):
    query, key, value = operands(rng, queries=30, keys=30)
    distance = np.abs(np.arange(30)[:, None] - np.arange(30))
    local = attention.request(query, key, value, parameters=("local", {"window": 4}))
    close(attend.output(local), attention.attend(query, key, value, masks=[distance <= 4])[0])
    everything = attention.request(query, key, value, parameters=("local", {"window": 30}))
    close(attend.output(everything), attention.attend(query, key, value)[0])
    block = np.arange(30) // 7  # the last has 2 tokens, and so no last key of its own
    last = np.arange(30) % 7 == 6
    seen = (block[:, None] == block) | last
    strided = attention.request(query, key, value, parameters=("strided", {"block": 7}))
    close(attend.output(strided), attention.attend(query, key, value, masks=[seen])[0])


def test_linear(attend, rng):
    query, key, value = operands(rng)
    for feature_map, phi in ((pb.FEATURE_MAP_ELU_PLUS_ONE, lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))),
                             (pb.FEATURE_MAP_RELU, lambda x: np.maximum(x, 0))):
        products = phi(query.astype(np.float64)) @ phi(key.astype(np.float64)).swapaxes(-1, -2)
        total = products.sum(-1, keepdims=True)
        expected = np.divide(products, total, out=np.zeros_like(products), where=total > 0) @ value
        close(attend.output(attention.request(query, key, value, parameters=("linear", {"feature_map": feature_map}))),
              expected, 1e-4)


def test_linformer(attend, rng):
    query, key, value = operands(rng)
    e, f = (rng.standard_normal((4, 11)).astype(np.float32) for _ in range(2))
    message = attention.request(query, key, value, parameters=("linformer", {"key_projection": e, "value_projection": f}))
    close(attend.output(message), attention.attend(query, e @ key, f @ value)[0])
    identity = attention.request(query, key, value, parameters=("linformer", {"key_projection": np.eye(11)}))
    close(attend.output(identity), attention.attend(query, key, value)[0])


def sinusoidal(positions, dim):
    angles = np.arange(positions)[:, None] / 10000 ** (np.arange(0, dim, 2) / dim)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(positions, dim)


def test_positions(attend, rng):
    query, key, value = operands(rng)
    added = _positions(attention.request(query, key, value), added=pb.AddedPositions(
        sinusoidal=pb.SinusoidalPositions()))
    close(attend.output(added), attention.attend(query + sinusoidal(7, 8), key + sinusoidal(11, 8), value)[0])
    table = rng.standard_normal((11, 8)).astype(np.float32)
    rows = rng.standard_normal((2, 11, 8)).astype(np.float32)
    learned = pb.AddedPositions(learned=attention.tensor(table), to_value=True)
    close(attend.output(_positions(attention.request(rows), added=learned)),
          attention.attend(rows + table, rows + table, rows + table)[0])
    learned.to_value = False
    close(attend.output(_positions(attention.request(rows), added=learned)),
          attention.attend(rows + table, rows + table, rows)[0])

    def turn(x):
        angles = np.arange(x.shape[-2])[:, None] / 10000 ** (np.arange(0, 8, 2) / 8)
        a, b = x[..., :4], x[..., 4:]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)
    rotary = _positions(attention.request(query, key, value), rotary=pb.RotaryPositions())
    close(attend.output(rotary), attention.attend(turn(query), turn(key), value)[0])
    close(attend.output(_positions(attention.request(rows), rotary=pb.RotaryPositions())),
          attention.attend(turn(rows), turn(rows), rows)[0])

    slopes = np.array([0.5, 0.25, 1.0])
    distance = np.abs(np.arange(7)[:, None] - np.arange(11))
    alibi = _positions(attention.request(query, key, value), alibi=pb.AlibiPositions(slopes=slopes))
    close(attend.output(alibi), attention.attend(query, key, value, masks=[-slopes[:, None, None] * distance])[0])


def _positions(message, **position):
    for name, value in position.items():
        getattr(message, name).CopyFrom(value)
    return message


@pytest.fixture(scope="module")
def state(rng):
    return {"in_proj_weight": rng.standard_normal((48, 16)).astype(np.float32) / 4,
            "in_proj_bias": rng.standard_normal(48).astype(np.float32),
            "out_proj.weight": rng.standard_normal((16, 16)).astype(np.float32) / 4,
            "out_proj.bias": rng.standard_normal(16).astype(np.float32)}


def test_multi_head_with_its_weights_in_the_request(attend, rng, state):
    query, key = (rng.standard_normal((2, n, 16)).astype(np.float32) for n in (5, 9))
    weights = np.split(state["in_proj_weight"], 3)
    biases = np.split(state["in_proj_bias"], 3)
    parameters = {"heads": 4, "query_weight": weights[0], "key_weight": weights[1], "value_weight": weights[2],
                  "output_weight": state["out_proj.weight"], "query_bias": biases[0], "key_bias": biases[1],
                  "value_bias": biases[2], "output_bias": state["out_proj.bias"]}
    answer = attend.attend(attention.request(query, key, weights=PER_HEAD, parameters=("multi_head", parameters)))
    expected, expected_weights = attention.multi_head(state, 4, query, key, key)
    close(attention.array(answer.output), expected)
    close(attention.array(answer.weights), expected_weights)


def test_the_service_can_be_off(start_server):
    server = start_server({"tiny": settings.TINY_MODEL}, "--attention=off").wait_ready()
    with attention.Client(server.grpc) as client, pytest.raises(grpc.RpcError) as error:
        client.stub.ListAttention(pb.ListAttentionRequest(), timeout=30)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert 'model="attention"' not in server.get("/metrics")[1]


def test_a_loaded_module(start_server, tmp_path, rng, state):
    folder = attention.write_module(tmp_path / "mha", {"type": "MultiheadAttention", "num_heads": 4}, state)
    server = start_server({"mha": folder}, "--dtype=f32").wait_ready()
    query, key = (rng.standard_normal((2, n, 16)).astype(np.float32) for n in (5, 9))
    padding = np.arange(9) < np.array([[9], [4]])
    expected, weights = attention.multi_head(state, 4, query, key, key, masks=[padding[:, None, None]])
    with attention.Client(server.grpc) as client:
        answer = client.attend(attention.request(query, key, padding=padding, model="mha", weights=AVERAGED))
        close(attention.array(answer.output), expected)
        close(attention.array(answer.weights), weights.mean(1))
        listed = client.stub.ListAttention(pb.ListAttentionRequest())
        assert [(m.name, m.type, m.heads, m.hidden) for m in listed.modules] == [("mha", "multi_head", 4, 16)]
        code, details = client.error(attention.request(query, key, model="mha", scale=2))
        assert code.name == "INVALID_ARGUMENT" and "scale is set, but model 'mha' is a module" in details
        code, details = client.error(attention.request(query[..., :8], model="mha"))
        assert code.name == "INVALID_ARGUMENT" and "16" in details and "8" in details
    metrics = server.get("/metrics")[1]
    assert 'requests_total{code="OK",method="attend",model="mha"} 1' in metrics
    assert re.search(r'model_loaded_info{backend="attention",dtype="f32",isa="(avx|amx)\w*",model="mha"} 1', metrics)


def test_a_module_that_cannot_load_says_why_at_each_call(start_server, tmp_path, rng, state):
    folder = attention.write_module(tmp_path / "mha", {"type": "MultiheadAttention", "num_heads": 5}, state)
    server = start_server({"mha": folder, "tiny": settings.TINY_MODEL}, "--dtype=f32")
    message = attention.request(rng.standard_normal((1, 2, 16)).astype(np.float32), model="mha")
    with attention.Client(server.grpc) as client:
        deadline = time.monotonic() + attendant.DEADLINE
        while "failed to load" not in (answer := client.error(message))[1]:
            assert answer[0].name == "UNAVAILABLE" and "is loading" in answer[1] and time.monotonic() < deadline
        assert answer[0].name == "UNAVAILABLE" and "hidden is 16, it must be a multiple of heads, 5" in answer[1]
