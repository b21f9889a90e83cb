#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what the `tokenizers` library decodes from ids, for each kind of decoder. The same on every run.

    make_decoded.py       needs: pip install tokenizers (made with 0.23.3), and the files of make_families.py

decoded.json     [{"tokenizer": NAME of families/, "decoder": its JSON, "cases": [[ids, skip special tokens, text]]}]
"""

import json
import pathlib
import random

from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent
WORDPIECE = {"type": "WordPiece", "prefix": "##", "cleanup": True}
GEMMA = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                          {"type": "ByteFallback"}, {"type": "Fuse"}]}
LLAMA = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                          {"type": "ByteFallback"}, {"type": "Fuse"},
                                          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}


def metaspace(scheme):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True}


DECODERS = [
    ("roberta", {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}),
    ("modernbert", {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}),
    ("xlm_roberta", metaspace("always")), ("xlm_roberta", metaspace("never")), ("camembert", metaspace("first")),
    ("gemma", GEMMA), ("gemma", LLAMA), ("gemma", None), ("clip", {"type": "BPEDecoder", "suffix": "</w>"}),
    ("prefixed", WORDPIECE), ("prefixed", WORDPIECE | {"cleanup": False}), ("roberta", {"type": "Fuse"}),
    ("gemma", {"type": "ByteFallback"}),
    ("roberta", {"type": "Strip", "content": "Ġ", "start": 2, "stop": 0}),
    ("roberta", {"type": "Strip", "content": "e", "start": 0, "stop": 1}),
    ("xlm_roberta", {"type": "Replace", "pattern": {"Regex": "[aeiou]+"}, "content": "<>"}),
    ("roberta", None),
]
# What WordPiece's clean-up looks for.
ENGLISH = ["do not", "isn't it ? it 's , we 've we 're I 'm ' x ' . !"]


def cases(tokenizer, texts, rng):
    vocab = tokenizer.get_vocab_size()
    listed = [tokenizer.encode(text, add_special_tokens=i % 2 == 0).ids for i, text in enumerate(texts)]
    listed += [[rng.randrange(vocab) for _ in range(rng.randrange(12))] for _ in range(30)]
    listed += [[], [vocab + 7], [0, vocab + 1, 3]]
    return [[ids, skip, tokenizer.decode(ids, skip_special_tokens=skip)] for ids in listed for skip in (False, True)]


def main():
    rng = random.Random(20261122)
    texts = json.loads((HERE / "families" / "texts.json").read_text(encoding="utf-8"))
    texts = [text for text in texts if len(text) < 60][::9] + ENGLISH
    out = []
    for name, decoder in DECODERS:
        contents = json.loads((HERE / "families" / f"{name}.json").read_text(encoding="utf-8")) | {"decoder": decoder}
        tokenizer = Tokenizer.from_str(json.dumps(contents))
        out.append({"tokenizer": name, "decoder": decoder, "cases": cases(tokenizer, texts, rng)})
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in out)
    (HERE / "families" / "decoded.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
