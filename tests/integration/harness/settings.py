# SPDX-License-Identifier: Apache-2.0
"""Where things are: the tree, the programs under test, the model."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "encoder"
TINY_MODEL = GOLDEN / "tiny_gelu"
MINILM = "all-MiniLM-L6-v2"
# ATTENDANT_SANITIZE as CMake has it, where the programs are built with it: they are slow, and their memory is
# mostly the sanitizer's.
SANITIZED = bool(os.environ.get("ATTENDANT_SANITIZE"))
PATIENCE = 10 if SANITIZED else 1


def bin_dir():
    """ATTENDANT_BIN_DIR, default the release preset's."""
    folder = pathlib.Path(os.environ.get("ATTENDANT_BIN_DIR", ROOT / "build" / "release" / "bin"))
    assert (folder / "attendant-server").is_file(), f"no attendant-server in {folder}: set ATTENDANT_BIN_DIR"
    return folder


def real_model(name):
    """Where deploy/fetch-model.sh puts a model; of all-MiniLM-L6-v2 ATTENDANT_TEST_MODEL names another place."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    cache = os.environ.get("ATTENDANT_CACHE", os.path.join(cache, "attendant"))
    folder = pathlib.Path(cache) / "models" / name
    if name == MINILM:
        folder = pathlib.Path(os.environ.get("ATTENDANT_TEST_MODEL", folder))
    assert (folder / "model.safetensors").is_file(), f"no model in {folder}: run deploy/fetch-model.sh {name}"
    return folder


def model_dir():
    return real_model(MINILM)
