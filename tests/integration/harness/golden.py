# SPDX-License-Identifier: Apache-2.0
"""The committed numbers of PyTorch and sentence-transformers (tests/golden)."""

import collections
import json

import numpy as np

from harness import settings

DTYPES = {"F32": np.float32, "I32": np.int32, "BF16": np.uint16}


def read_safetensors(path):
    """{name: array}; BF16 becomes f32"""
    def array(entry):
        stored = np.frombuffer(body[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return (stored.astype(np.uint32) << 16).view(np.float32) if entry["dtype"] == "BF16" else stored

    data = path.read_bytes()
    header_bytes = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + header_bytes]), data[8 + header_bytes:]
    header.pop("__metadata__", None)
    return {name: array(entry) for name, entry in header.items()}


def cases(model):
    """{case: {field: array}} of one golden folder."""
    result = collections.defaultdict(dict)
    for name, array in read_safetensors(settings.GOLDEN / model / "golden.safetensors").items():
        case, field = name.split("/")
        result[case][field] = array
    return dict(result)


def sentences(model):
    """Texts, their token ids, and what sentence-transformers makes of them: [texts], [texts], [texts, hidden]."""
    texts = json.loads((settings.GOLDEN / "real_texts.json").read_text(encoding="utf-8"))
    golden = cases(model)
    ordered = [golden[name] for name in sorted(name for name in golden if name.startswith("text_"))]
    assert len(texts) == len(ordered)
    return texts, [case["token_ids"] for case in ordered], np.stack([case["embedding"] for case in ordered])
