# SPDX-License-Identifier: Apache-2.0
"""PyTorch's attention and modules against the server's, through the wire, in f32 and bf16."""

import numpy as np
import pytest

from harness import attention, processor
from harness import attention_golden as golden
from harness.attention import AVERAGED, NONE, PER_HEAD

WIRE = {"f32": attention.common.DTYPE_F32, "bf16": attention.common.DTYPE_BF16}
TOLERANCE = {"f32": 1e-5, "bf16": 1e-2}


def close(actual, expected, dtype, layers=False):
    """Every number within the tolerance, of those beyond 1 relatively. After several layers in bf16, where numbers of
    size 4 are 1/64 apart, the whole is, relatively to its own size: PyTorch's own bf16 is 9.1e-3 from its f32 there."""
    actual, expected = (a.reshape(-1, a.shape[-1]) for a in (actual, expected))
    assert actual.shape == expected.shape and actual.size
    difference = actual.astype(np.float64) - expected
    error = (np.abs(difference) / np.maximum(1, np.abs(expected))).max()
    if layers and dtype == "bf16":
        error = np.linalg.norm(difference) / np.linalg.norm(expected)
    assert error <= TOLERANCE[dtype]


def send(dtype, *operands, **fields):
    """A request of operands in `dtype`, computed and answered in it."""
    message = attention.request(*operands, dtype=dtype, **fields)
    message.compute_dtype = message.dtype = WIRE[dtype]
    return message


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The modules of the usual sizes, as a user saves them, and the small ones of the golden folder."""
    made = tmp_path_factory.mktemp("modules")
    folders = {case["name"]: golden.FOLDER / case["name"] for case in golden.CASES["checkpoints"]}
    for case in golden.CASES["mha"]:
        folders[case["name"]] = attention.write_module(
            made / case["name"], {"type": "MultiheadAttention", "embed_dim": case["hidden"], "num_heads": case["heads"]},
            golden.fill(golden.multi_head_shapes(case["hidden"]), case["seed"] + 1))
    for case in golden.CASES["encoder"]:
        config = {key: case[key] for key in ("type", "num_layers", "d_model", "nhead", "dim_feedforward", "activation",
                                             "norm_first", "layer_norm_eps")}
        shapes = golden.encoder_shapes(case["num_layers"], case["d_model"], case["dim_feedforward"])
        folders[case["name"]] = attention.write_module(made / case["name"], config, golden.fill(shapes, case["seed"] + 1))
    return folders


@pytest.fixture(params=["f32", "bf16"])
def dtype(request):
    return request.param


@pytest.fixture
def modules_in_dtype(dtype):
    if not processor.computes_in(dtype):
        pytest.skip(f"this processor does not compute modules in {dtype}")


@pytest.fixture
def attend(start_server, folders, dtype, modules_in_dtype):  # pylint: disable=unused-argument
    with attention.Client(start_server(folders, f"--dtype={dtype}").wait_ready().grpc) as client:
        yield client


@pytest.fixture
def operators(server):
    with attention.Client(server.grpc) as client:
        yield client


@pytest.mark.parametrize("case", golden.CASES["sdpa"], ids=lambda case: case["name"])
def test_scaled_dot_product(operators, case, dtype):
    batch, heads, queries, keys = (case[field] for field in ("batch", "heads", "queries", "keys"))
    operands = [golden.values(case["seed"] + i, (batch, heads, length, dim), amplitude) for i, (length, dim, amplitude)
                in enumerate([(queries, case["head_dim"], case["amplitude"]), (keys, case["head_dim"], case["amplitude"]),
                              (keys, case["value_dim"], 1.0)])]
    for weights in (NONE, PER_HEAD):  # without: flash
        message = send(dtype, *operands, mask=golden.sdpa_mask(case), causal=case["causal"], weights=weights)
        if "scale" in case:
            message.scale = case["scale"]
        answer = operators.attend(message)
        close(golden.chosen_rows(attention.array(answer.output), case["step"]),
              golden.TENSORS[f"{case['name']}/{dtype}"], dtype)
        assert answer.HasField("weights") == (weights != NONE)


def test_all_modules(attend, dtype):
    for case in golden.CASES["mha"]:
        check_multi_head(attend, case, dtype, model=case["name"])
    for case in golden.CASES["encoder"]:
        states = golden.values(case["seed"], (case["batch"], case["seq"], case["d_model"]))
        padding = golden.kept_keys(case["batch"], case["seq"])
        answer = attend.output(send(dtype, states, padding=padding, model=case["name"]))
        close(golden.chosen_rows(answer, case["step"]), golden.TENSORS[f"{case['name']}/{dtype}"], dtype, layers=True)
    for case in golden.CASES["checkpoints"]:
        check_checkpoint(attend, case, dtype)


def check_multi_head(client, case, dtype, **fields):
    name, step = case["name"], case["step"]
    states = golden.values(case["seed"], (case["batch"], case["seq"], case["hidden"]))
    padding = golden.kept_keys(case["batch"], case["seq"]) if case["padded"] else None
    for weights, field, weights_step in ((NONE, None, 0), (AVERAGED, "averaged", step), (PER_HEAD, "per_head", step * 7)):
        answer = client.attend(send(dtype, states, padding=padding, causal=case["causal"], weights=weights, **fields))
        close(golden.chosen_rows(attention.array(answer.output), step), golden.TENSORS[f"{name}/{dtype}"], dtype)
        if field is not None:
            close(golden.chosen_rows(attention.array(answer.weights), weights_step), golden.TENSORS[f"{name}/{field}"], dtype)


def check_checkpoint(client, case, dtype):
    """Stored in f32 by PyTorch: bf16 is held to that, too."""
    name, seed = case["name"], case["seed"]
    cross = f"{name}/weights" in golden.TENSORS
    widths = golden.widths(name)
    if cross:
        operands = [golden.values(seed + i, (3, length, width)) for i, (length, width) in
                    enumerate(zip((9, 13, 13), widths))]
        answer = client.attend(send(dtype, *operands, padding=golden.kept_keys(3, 13), model=name, weights=PER_HEAD))
        close(attention.array(answer.weights), golden.TENSORS[f"{name}/weights"], dtype)
        return close(attention.array(answer.output), golden.TENSORS[f"{name}/out"], dtype)
    states = golden.values(seed, (3, 9, widths[0]))
    padded = client.output(send(dtype, states, padding=golden.kept_keys(3, 9), model=name))
    close(padded, golden.TENSORS[f"{name}/out"], dtype, layers=True)
    causal = client.output(send(dtype, states, causal=True, model=name))
    close(causal, golden.TENSORS[f"{name}/causal"], dtype, layers=True)


@pytest.mark.usefixtures("modules_in_dtype")
def test_multi_head_with_its_weights_in_the_request(operators, dtype):
    for case in golden.CASES["mha"]:
        if case["hidden"] == 1024:
            continue  # 16 MiB of weights: more than one message may have by default
        state = golden.fill(golden.multi_head_shapes(case["hidden"]), case["seed"] + 1)
        names = ("query", "key", "value")
        parameters = {"heads": case["heads"], "output_weight": state["out_proj.weight"],
                      "output_bias": state["out_proj.bias"]}
        parameters |= {f"{name}_weight": part for name, part in zip(names, np.split(state["in_proj_weight"], 3))}
        parameters |= {f"{name}_bias": part for name, part in zip(names, np.split(state["in_proj_bias"], 3))}
        check_multi_head(operators, case, dtype, parameters=("multi_head", parameters))
