# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's AIPerf, unchanged, at the doors that it speaks to. It brings 140 packages and takes a minute for each door, so
only with ATTENDANT_TEST_AIPERF=1."""

import json
import os
import pathlib
import subprocess

import pytest

from harness import settings
from harness.server import serving

pytestmark = pytest.mark.skipif(os.environ.get("ATTENDANT_TEST_AIPERF") != "1", reason="needs ATTENDANT_TEST_AIPERF=1")
HERE = pathlib.Path(__file__).resolve().parent
RERANKER = "bert_reranker"
REQUESTS = 10


@pytest.fixture(scope="module")
def aiperf():
    """The program, in an environment of its own."""
    python = subprocess.run([HERE.parent / "python.sh", "-c", "import sys; print(sys.executable)"], check=True, text=True,
                            stdout=subprocess.PIPE, env={**os.environ, "ATTENDANT_REQUIREMENTS": HERE / "requirements.txt"})
    return pathlib.Path(python.stdout.strip()).parent / "aiperf"


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = settings.ROOT / "tests" / "golden" / "classifier" / RERANKER
    models = {"minilm": settings.model_dir(), RERANKER: folder}
    with serving(tmp_path_factory.mktemp("server"), models, "--dtype=f32") as running:
        yield running


@pytest.mark.parametrize("endpoint, arguments", [
    ("embeddings", ["-m", "minilm", "--synthetic-input-tokens-mean", "20"]),
    ("cohere_rankings", ["-m", RERANKER, "--endpoint", "/v2/rerank"]),
    ("hf_tei_rankings", ["-m", RERANKER, "--header", f"x-model:{RERANKER}", "--extra-inputs", "truncate:true"]),
])
def test_every_request_is_answered(both, aiperf, tmp_path, endpoint, arguments):
    done = subprocess.run([aiperf, "profile", "--url", f"http://{both.http}", "--endpoint-type", endpoint,
                           "--tokenizer", settings.model_dir(), "--concurrency", "2", "--request-count", str(REQUESTS),
                           "--workers-max", "1", "--ui-type", "simple", "--artifact-dir", tmp_path, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stdout
    report = json.loads((tmp_path / "profile_export_aiperf.json").read_text(encoding="utf-8"))
    assert report["request_count"]["avg"] == REQUESTS and report["request_error_rate"]["avg"] == 0, done.stdout
