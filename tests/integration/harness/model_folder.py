# SPDX-License-Identifier: Apache-2.0
"""Folders of the golden tiny model whose weights change."""

import json
import os
import shutil

import numpy as np

from harness import settings


def write_model(folder, negate):
    """The golden tiny model, or one whose word embeddings have the other sign. The weights change in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    data = bytearray((settings.TINY_MODEL / "model.safetensors").read_bytes())
    header_bytes = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + header_bytes])
    name = next(name for name in header if name.endswith("word_embeddings.weight"))
    begin, end = (8 + header_bytes + offset for offset in header[name]["data_offsets"])
    if negate:
        values = -np.frombuffer(bytes(data[begin:end]), "<f4")
        data[begin:end] = values.tobytes()
    draft = folder / "draft"
    draft.write_bytes(data)
    os.replace(draft, folder / "model.safetensors")
    shutil.copy(settings.TINY_MODEL / "config.json", folder / "config.json")
