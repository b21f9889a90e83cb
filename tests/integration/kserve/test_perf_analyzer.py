# SPDX-License-Identifier: Apache-2.0
"""Triton's perf_analyzer, the binary as it was published, measures a running server."""

import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = HERE / "texts.json"
IDS = HERE / "ids.json"


# A short window on a busy machine never settles to perf_analyzer's taste, hence the wide stability limit.
def measure(server, model, *arguments):
    done = subprocess.run(
        [HERE / "perf_analyzer.sh", "-i", "grpc", "-u", server.grpc, "-m", model, "--measurement-interval", "1000",
         "--stability-percentage", "999", "--max-trials", "4", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("arguments", [
    ("minilm", "--input-data", TEXTS, "--concurrency-range", 2),
    ("minilm", "--input-data", TEXTS, "--concurrency-range", 2, "--streaming"),
    ("minilm", "--input-data", TEXTS, "-b", 4),
    ("minilm", "--string-length", 32),
    ("minilm.ids", "--input-data", IDS),
    ("minilm.encoder", "--input-data", IDS, "-b", 2),
], ids=lambda arguments: " ".join(str(getattr(argument, "name", argument)) for argument in arguments))
def test_it_runs_unchanged(server, arguments):
    code, text = measure(server, *arguments)
    assert code == 0, text
    assert "Server:" in text, f"no statistics were read:\n{text}"
    assert "throughput:" in text


def test_random_ids_are_refused_cleanly(server):
    code, text = measure(server, "minilm.ids", "--shape", "input_ids:8", "--shape", "attention_mask:8",
                         "--shape", "token_type_ids:8")
    assert code != 0
    assert "attention_mask" in text and "it must be 0 or 1" in text
    assert measure(server, "minilm", "--string-length", 8)[0] == 0, "the server goes on"
