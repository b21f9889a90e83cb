# SPDX-License-Identifier: Apache-2.0
"""What is cut of long texts and pairs, and what the server tells about it, against PyPI's tokenizers."""

import json
import shutil
import subprocess

import grpc
import pytest
import tokenizers

from harness import attendant, settings
from harness.attendant import pb
from harness.server import serving

GOLDEN = settings.ROOT / "tests" / "golden" / "classifier"
NAMES = ["bert_reranker", "modernbert_reranker", "roberta_classifier", "xlm_roberta_multi_label"]
LIMIT = 40
LONG, OTHER = "the quick brown fox jumps over the lazy dog. " * 4, "how tall is the tower? it has 330 metres. " * 3
INPUTS = [[LONG], [OTHER], ["fox"], [LONG, "fox"], ["fox", LONG], [LONG, OTHER], [OTHER, LONG], ["", LONG], ["fox", "dog"]]
SIDES = {"right": pb.TRUNCATION_RIGHT, "left": pb.TRUNCATION_LEFT}
STRATEGIES = {"longest_first": pb.PAIR_TRUNCATION_UNSPECIFIED, "only_first": pb.PAIR_TRUNCATION_ONLY_FIRST,
              "only_second": pb.PAIR_TRUNCATION_ONLY_SECOND}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = {name: GOLDEN / name for name in NAMES}
    models["cuts_left"] = shutil.copytree(GOLDEN / "bert_reranker", tmp_path_factory.mktemp("models") / "cuts_left")
    file = models["cuts_left"] / "tokenizer.json"
    truncation = {"direction": "Left", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"truncation": truncation}))
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


def sequence(strings):
    if len(strings) == 1:
        return pb.Sequence(text=strings[0])
    return pb.Sequence(pair=pb.TextPair(first=strings[0], second=strings[1]))


def message(name, strings, side, strategy="longest_first"):
    request = attendant.request(name, [sequence(strings)], token_ids=True, token_offsets=True, pooled=pb.PooledOutput())
    request.truncation, request.pair_truncation = SIDES[side], STRATEGIES[strategy]
    return request


def library(name):
    """The tokenizer as transformers has it: RobertaTokenizer makes its processor anew, and with the space before a text, of
    which tokenizer_config.json says nothing, not there."""
    file = json.loads((GOLDEN / name / "tokenizer.json").read_text())
    if file["post_processor"]["type"] == "RobertaProcessing":
        file["post_processor"]["add_prefix_space"] = False
    return tokenizers.Tokenizer.from_str(json.dumps(file))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_those_of_the_library(client, name, side, strategy):
    tokenizer = library(name)
    compared = refused = 0
    for strings in INPUTS:
        tokenizer.no_truncation()
        seen = len(tokenizer.encode(*strings).ids)
        tokenizer.enable_truncation(LIMIT, strategy=strategy if len(strings) == 2 else "longest_first", direction=side)
        try:
            encoding = tokenizer.encode(*strings)
        except Exception as error:  # the library's own type is Exception
            assert "too short" in str(error)
            code, details = client.error(message(name, strings, side, strategy))
            assert (code, "text may be cut" in details) == (grpc.StatusCode.INVALID_ARGUMENT, True), details
            refused += 1
            continue
        info = client.encode(message(name, strings, side, strategy)).sequences[0]
        assert list(info.token_ids) == encoding.ids, strings
        assert list(zip(info.offsets.starts, info.offsets.ends)) == encoding.offsets, strings
        assert (info.tokens, info.tokens_seen, info.truncated) == (len(encoding.ids), seen, seen > LIMIT)
        compared += 1
    assert compared >= 5 and (refused > 0) == (strategy != "longest_first")


def test_the_side_of_the_tokenizers_file_counts_where_a_request_has_none(client):
    def ids(request):
        return list(client.encode(request).sequences[0].token_ids)

    def without_a_side(name):
        return ids(attendant.request(name, [sequence([LONG])], token_ids=True, pooled=pb.PooledOutput()))
    left, right = (ids(message("cuts_left", [LONG], side)) for side in ("left", "right"))
    assert (without_a_side("cuts_left"), without_a_side("bert_reranker")) == (left, right)
    assert left != right


def test_ids_are_cut_on_either_side(client):
    ids = [4 + i % 50 for i in range(60)]
    for side, wanted in (("right", ids[:LIMIT]), ("left", ids[-LIMIT:])):
        request = attendant.request("bert_reranker", [attendant.ids(ids)], token_ids=True, pooled=pb.PooledOutput())
        request.truncation = SIDES[side]
        info = client.encode(request).sequences[0]
        assert (list(info.token_ids), info.tokens_seen, info.truncated) == (wanted, 60, True)


def test_an_unknown_way_is_refused(client):
    request = message("bert_reranker", ["fox"], "right")
    request.pair_truncation = 9
    code, details = client.error(request)
    assert (code, details) == (grpc.StatusCode.INVALID_ARGUMENT, "pair_truncation is 9, which is not one of its values")


def test_http_cuts_on_either_side(server):
    def embedded(side, code=200):
        return server.post_json("/embed", {"inputs": LONG, "truncate": True, "truncation_direction": side},
                                "bert_reranker", code)
    embed = {side: embedded(side) for side in ("left", "Left", "right")}
    assert embed["left"] == embed["Left"] != embed["right"]
    for word, side in (("START", "left"), ("END", "right")):
        body = {"model": "bert_reranker", "texts": [LONG], "truncate": word}
        found = server.post_json("/v2/embed", body)["embeddings"]["float"][0]
        size = sum(value * value for value in found) ** 0.5  # TEI normalizes
        assert [value / size for value in found] == pytest.approx(embed[side][0], abs=1e-6)
    assert "left or right" in embedded("both", code=400)["error"]


def test_the_command_tells_what_was_cut(server):
    def run(*arguments):
        return subprocess.run([settings.bin_dir() / "attendant", *arguments, f"--server={server.grpc}",
                               "--model=bert_reranker"], check=True, capture_output=True, text=True).stdout
    line = json.loads(run("embed", "--json", "--truncation=left", LONG))
    assert line["truncated"] and line["tokens_seen"] > line["tokens"] == LIMIT
    assert f"(cut from {line['tokens_seen']})" in run("embed", LONG)
    assert json.loads(run("rerank", "--json", "--pair_truncation=only_second", "--query=fox", LONG))["truncated"]
