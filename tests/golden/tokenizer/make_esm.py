#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes esm.json: folders with a vocab.txt for EsmTokenizer, and the ids that it gives to odd texts. The same on every run.

    make_esm.py      needs: pip install transformers (made with transformers 5.23)"""

import itertools
import json
import pathlib
import random
import tempfile

import transformers
from transformers.models.esm.configuration_esm import get_default_vocab_list

HERE = pathlib.Path(__file__).resolve().parent
SPECIAL = ["<cls>", "<pad>", "<eos>", "<unk>"]
CONFIG = {"tokenizer_class": "EsmTokenizer"}
# name: (tokens, tokenizer_config.json, special_tokens_map.json)
FOLDERS = {
    "proteins": (get_default_vocab_list(), CONFIG, {"cls_token": "<cls>", "eos_token": "<eos>", "mask_token": "<mask>"}),
    "nucleotides": (["<unk>", "<pad>", "<mask>", "<cls>", "<eos>", *map("".join, itertools.product("ACGT", repeat=3)), *"ACGTN"],
                    CONFIG | {"eos_token": None}, {}),
    "overlaps": ([*SPECIAL, "A", "AB", "ABC", "BCDE", "CDA", "\u00e9", "e\u0301", '"', "\\", "<mask>", "<mas", "b"],
                 CONFIG | {"unk_token": {"__type": "AddedToken", "content": "b", "lstrip": True, "rstrip": True,
                                         "single_word": False, "normalized": True, "special": True},
                           "extra_special_tokens": ["AB"]}, {}),
}
TEXTS = ["", " ", "MKT", "M K\tT\n", "mkT", "MK<mask>T", "<mask>", " <mask> <mask>", "<<mask>>", "<mas", "<Mask>", "<cls>MK<eos>",
         "M\u001cK\u001dk\u001ek\u001f.", "M\u00a0k\u3000k\u0085k", "a\u200bb", "\u00e9e\u0301", "ABCDE ABCD ABCDA", "\"\\", "ACGTNACGTACX", "acgt",
         "\x00M\x7f", "\U0001f9ecM", "<null_1>.-", "M" * 30, "<unk><pad>"]


def random_text(rng, tokens):
    parts = [*tokens, " ", "x", "k", "<", "mask>", "\u00a0", "\u2028", "\u001e", "\u00e4", "A", "C", "G", "B", "D", "E"]
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 14)))


def main():
    rng = random.Random(7)
    folders = {}
    for name, (tokens, config, special) in FOLDERS.items():
        files = {"vocab.txt": "\n".join(tokens) + "\n", "tokenizer_config.json": json.dumps(config)}
        if special:
            files["special_tokens_map.json"] = json.dumps(special)
        with tempfile.TemporaryDirectory() as folder:
            for file, content in files.items():
                (pathlib.Path(folder) / file).write_text(content)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        texts = [[text] for text in TEXTS + [random_text(rng, tokens) for _ in range(60)]]
        if tokenizer.eos_token is not None:
            texts += [["MKT", "A"], ["", "M<mask>"]]
        cases = []
        for text in texts:
            ids = tokenizer(*text)["input_ids"]
            plain = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            cases.append({"texts": text, "ids": ids, "decoded": plain})
        folders[name] = {"files": files, "cases": cases}
    (HERE / "esm.json").write_text(json.dumps(folders) + "\n")


if __name__ == "__main__":
    main()
