# SPDX-License-Identifier: Apache-2.0
"""Triton's perf_analyzer over gRPC."""

import pytest

from harness.perf_analyzer import IDS_FILE, TEXTS_FILE, measure


@pytest.mark.parametrize("arguments", [
    ("minilm", "--input-data", TEXTS_FILE, "--concurrency-range", 2),
    ("minilm", "--input-data", TEXTS_FILE, "--concurrency-range", 2, "--streaming"),
    ("minilm", "--input-data", TEXTS_FILE, "-b", 4),
    ("minilm", "--string-length", 32),
    ("minilm.ids", "--input-data", IDS_FILE),
    ("minilm.encoder", "--input-data", IDS_FILE, "-b", 2),
], ids=lambda arguments: " ".join(str(getattr(argument, "name", argument)) for argument in arguments))
def test_it_runs_unchanged(server, arguments):
    code, text = measure("grpc", server.grpc, *arguments)
    assert code == 0, text
    assert "Server:" in text, f"no statistics were read:\n{text}"
    assert "throughput:" in text


def test_random_ids_are_refused_cleanly(server):
    code, text = measure("grpc", server.grpc, "minilm.ids", "--shape", "input_ids:8", "--shape", "attention_mask:8",
                         "--shape", "token_type_ids:8")
    assert code != 0
    assert "attention_mask" in text and "it must be 0 or 1" in text
    assert measure("grpc", server.grpc, "minilm", "--string-length", 8)[0] == 0, "the server goes on"
