# SPDX-License-Identifier: Apache-2.0
"""Attention weights and inner hidden states over the wire equal transformers'; the heatmap command draws them."""

import json
import subprocess
import xml.etree.ElementTree
import zlib

import grpc
import numpy as np
import pytest

from harness import attendant, golden, memory, processor, settings

CASES = {"tiny": ("len_1", "len_7", "len_17", "segments", "mask_with_holes"), "minilm": ("states_0", "states_1")}
FOLDERS = {"tiny": "tiny_gelu", "minilm": "all-MiniLM-L6-v2"}


def everything(model, sequences, **outputs):
    return attendant.request(model, sequences, attention_weights=attendant.pb.AttentionSelection(), **outputs)


def golden_cases():
    for model, names in CASES.items():
        cases = golden.cases(FOLDERS[model])
        for name in names:
            yield pytest.param(model, cases[name], id=f"{model}-{name}")


def with_holes(case):
    """The token ids at their positions, and the mask that leaves only them."""
    mask = np.zeros(case["positions"][-1] + 1, bool)
    mask[case["positions"]] = True
    ids, segments = np.zeros((2, len(mask)), np.int32)
    ids[mask], segments[mask] = case["token_ids"], case["segment_ids"]
    return ids, mask, segments


@pytest.mark.parametrize("model, case", list(golden_cases()))
def test_equals_transformers(client, model, case):
    ids, mask, segments = with_holes(case)
    layers = len(case["hidden_states"])
    answer = client.encode(everything(model, [attendant.ids(ids, mask, segments)], hidden_layers=range(layers)))
    weights = attendant.array(answer.attention_weights[0])
    kept = np.ix_(range(weights.shape[0]), range(weights.shape[1]), mask, mask)
    assert weights.shape[2:] == (len(ids), len(ids))
    assert np.abs(weights[kept] - case["attention_weights"]).max() <= 1e-5
    assert np.abs(weights.sum(-1) - mask).max() <= 1e-5
    assert weights[..., ~mask].sum() == 0 and weights[..., ~mask, :].sum() == 0
    states = attendant.array(answer.hidden_states)
    assert np.abs(states[:, mask] - case["hidden_states"]).max() <= 2e-5
    assert np.all(states[:, ~mask] == 0)


def test_text_comes_with_its_tokens(client):
    case = golden.cases("all-MiniLM-L6-v2")["states_1"]
    text = golden.sentences("all-MiniLM-L6-v2")[0][1]
    assert text == "A man is playing a guitar on stage."
    request = everything("minilm", attendant.texts(text), token_strings=True, token_ids=True)
    answer = client.encode(request)
    assert list(answer.sequences[0].token_strings) == [
        "[CLS]", "a", "man", "is", "playing", "a", "guitar", "on", "stage", ".", "[SEP]"]
    assert list(answer.sequences[0].token_ids) == list(case["token_ids"])
    assert np.abs(attendant.array(answer.attention_weights[0]) - case["attention_weights"]).max() <= 1e-5
    request.outputs.dtype = attendant.pb.DTYPE_F16
    halves = attendant.array(client.encode(request).attention_weights[0])
    assert np.abs(halves - case["attention_weights"]).max() <= 1e-3


def test_streams_what_is_chosen(client):
    case = golden.cases("all-MiniLM-L6-v2")["states_1"]
    chosen = attendant.pb.AttentionSelection(layers=[5, 2], heads=[11, 0, 3])
    requests = [attendant.request("minilm", [attendant.ids(case["token_ids"])], attention_weights=chosen)
                for _ in range(3)]
    answers = list(client.stub.EncodeStream(iter(requests), timeout=attendant.DEADLINE))
    assert len(answers) == 3
    expected = case["attention_weights"][np.ix_([5, 2], [11, 0, 3])]
    for answer in answers:
        assert np.abs(attendant.array(answer.response.attention_weights[0]) - expected).max() <= 1e-5


@pytest.mark.skipif(not processor.computes_in("bf16"), reason="this processor does not compute in bf16")
def test_bf16_is_close(start_server):
    server = start_server({"minilm": settings.model_dir()}, "--dtype=bf16").wait_ready()
    with attendant.Client(server.grpc) as client:
        for name in CASES["minilm"]:
            case = golden.cases("all-MiniLM-L6-v2")[name]
            answer = client.encode(everything("minilm", [attendant.ids(case["token_ids"])]))
            weights = attendant.array(answer.attention_weights[0])
            assert np.abs(weights - case["attention_weights"]).max() <= 1e-2
            assert np.abs(weights.sum(-1) - 1).max() <= 1e-5


def test_too_many_are_refused_before_they_take_memory(server, client):
    ids = [attendant.ids([101] + [2000] * 510 + [102])]
    chosen = attendant.pb.AttentionSelection(layers=[3])
    good = attendant.request("minilm", ids, attention_weights=chosen)
    client.encode(good)
    peak = memory.peak_bytes(server.pid)
    for _ in range(3):
        code, details = client.error(everything("minilm", ids * 4))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert "75497472 bytes" in details and "the limit is 33554432" in details
    assert memory.peak_bytes(server.pid) - peak < 16 << 20
    assert client.encode(good).attention_weights[0].shape == [1, 12, 512, 512]


def test_numbers_that_the_model_does_not_have(client):
    for chosen, words in (({"layers": [6]}, ("layers[0] is 6", "0 to 5")), ({"heads": [0, 12]}, ("heads[1] is 12", "0 to 11")),
                          ({"heads": [-1]}, ("heads[0] is -1",)), ({"layers": [1, 1]}, ("layers[1] is 1 again",))):
        request = attendant.request("minilm", attendant.texts("x"),
                                    attention_weights=attendant.pb.AttentionSelection(**chosen))
        code, details = client.error(request)
        assert code == grpc.StatusCode.INVALID_ARGUMENT and all(word in details for word in words), details
    client.encode(everything("minilm", attendant.texts("x")))


TEXT = "A man is playing a guitar on stage."


@pytest.fixture
def heatmap(server):
    """heatmap(ARGUMENT, ...): what it wrote; it must end with the exit code `code`."""
    def run(*arguments, code=0):
        command = [settings.bin_dir() / "attendant", "heatmap", f"--server={server.grpc}", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        assert done.returncode == code, f"{command}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        return done.stdout.decode() if code == 0 else done.stderr.decode()
    return run


def png_size(data):
    """Width and height of a PNG whose chunks are whole and whose rows are all there."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + size:at + 12 + size], "big")
        chunks[kind] = chunks.get(kind, b"") + body
        at += 12 + size
    width, height = (int.from_bytes(chunks[b"IHDR"][i:i + 4], "big") for i in (0, 4))
    assert kind == b"IEND" and len(zlib.decompress(chunks[b"IDAT"])) == height * (1 + 3 * width)
    return width, height


def test_heatmap_writes_pictures(heatmap, tmp_path):
    heatmap("--model=minilm", "--layer=3", "--heads=all", f"--out={tmp_path / 'map.png'}", TEXT)
    width, height = png_size((tmp_path / "map.png").read_bytes())
    heatmap("--model=minilm", "--layer=3", f"--out={tmp_path / 'half.png'}", "--scale=1", TEXT)
    assert (width, height) == tuple(2 * side for side in png_size((tmp_path / "half.png").read_bytes()))

    heatmap("--model=minilm", "--layer=3", f"--out={tmp_path / 'map.svg'}", TEXT + " <&>")
    root = xml.etree.ElementTree.parse(tmp_path / "map.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"minilm, layer 3", TEXT + " <&>", "head 0", "head 11", "guitar", "<", "&"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}image"))) == 13


def test_heatmap_writes_numbers(heatmap, tmp_path):
    expected = golden.cases("all-MiniLM-L6-v2")["states_1"]["attention_weights"]
    answer = json.loads(heatmap("--model=minilm", "--layer=2", "--heads=1,4-5", "--json", TEXT))
    assert answer["heads"] == [1, 4, 5] and answer["tokens"][6] == "guitar"
    assert np.abs(np.array(answer["weights"]) - expected[2, [1, 4, 5]]).max() <= 1e-5
    heatmap("--model=minilm", "--average", f"--npy={tmp_path / 'weights.npy'}", TEXT)
    assert np.abs(np.load(tmp_path / "weights.npy") - expected[5].mean(0, keepdims=True)).max() <= 1e-5


def test_heatmap_draws_in_the_terminal(heatmap):
    plain = heatmap("--model=minilm", "--layer=3", "--heads=0-2", TEXT)
    assert "head 2" in plain and "guitar" in plain and "\x1b" not in plain
    coloured = heatmap("--model=minilm", "--layer=3", "--color=true", "--columns=60", TEXT)
    assert coloured.count("\x1b[48;2;") >= 12 * 11 * 11
    assert "\x1b[48;5;" in heatmap("--model=minilm", "--color=256", TEXT)
    assert "#5" in heatmap("--model=tiny", "--ids=3,5,9", "--mask=1,1,0")


def test_heatmap_errors(heatmap, tmp_path):
    assert "from 0 to 5" in heatmap("--model=minilm", "--layer=6", TEXT, code=1)
    assert "from 0 to 11" in heatmap("--model=minilm", "--heads=12", TEXT, code=1)
    assert "one layer" in heatmap("--model=minilm", "--layer=all", TEXT, code=2)
    assert "--heads" in heatmap("--model=minilm", "--heads=3-1", TEXT, code=2)
    assert ".png" in heatmap("--model=minilm", "--out=map.gif", TEXT, code=2)
    assert "cannot write" in heatmap("--model=minilm", f"--out={tmp_path / 'no' / 'map.png'}", TEXT, code=2)
    assert "pixels" in heatmap("--model=minilm", f"--out={tmp_path / 'map.png'}", "--scale=16", TEXT, code=2)
    assert "one text" in heatmap("--model=minilm", TEXT, TEXT, code=2)
