#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has sentence-transformers save pylate_bert in its own layout, as multi_vector_encoder, and compute its vectors.

    make_saved_again.py     needs: pip install "sentence-transformers>=6" (made with 6.2)

expected.json is as make_golden.py has it; ids and tokens are those of pylate_bert."""

import json
import pathlib
import shutil

import numpy as np
import torch
from sentence_transformers import MultiVectorEncoder

HERE = pathlib.Path(__file__).parent


def main():
    torch.set_num_threads(1)
    folder = HERE / "multi_vector_encoder"
    shutil.rmtree(folder, ignore_errors=True)
    MultiVectorEncoder(str(HERE / "pylate_bert"), device="cpu").save_pretrained(str(folder), create_model_card=False)
    expected = json.loads((HERE / "pylate_bert" / "expected.json").read_text())
    model = MultiVectorEncoder(str(folder), device="cpu")
    for side, encode in (("query", model.encode_query), ("document", model.encode_document)):
        for case, vectors in zip(expected[side], encode(expected["texts"])):
            assert len(vectors) == len(case["tokens"])
            case["vectors"] = [[float(f"{x:.8g}") for x in row] for row in np.asarray(vectors).tolist()]
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)


if __name__ == "__main__":
    main()
