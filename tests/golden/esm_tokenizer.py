# SPDX-License-Identifier: Apache-2.0
"""ESM's tokenizer with the methods of the library `tokenizers` that the scripts of golden data call."""

import json
import pathlib
import tempfile
import types

import transformers
from transformers.models.esm.configuration_esm import get_default_vocab_list

PROTEINS = ("MKTAYIAKQRQISFVKSHFSRQ", "mk<mask>LL <mask>V.-X", "M K J12<null_1>\u00a0T<eos>", "", "GSHMAS<mask>" * 9,
            "MGSSHHHHHHSSGLVPRGSHM" * 4)


class EsmTokenizer:
    """Of ESM-2's vocabulary."""

    def __init__(self):
        self.tokens = get_default_vocab_list()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "vocab.txt"
            path.write_text("\n".join(self.tokens))
            self.tokenizer = transformers.EsmTokenizer(str(path))
        self.truncation = {}

    def get_vocab_size(self):
        return len(self.tokens)

    def token_to_id(self, token):
        return self.tokens.index(token) if token in self.tokens else None

    def enable_truncation(self, length, strategy="longest_first"):
        self.truncation = dict(max_length=length, truncation=strategy)

    def encode(self, *texts):
        ids = self.tokenizer(*texts, **self.truncation)["input_ids"]
        return types.SimpleNamespace(ids=ids, type_ids=[0] * len(ids))

    def save(self, path, pretty=False):
        """The files of ESM's folders, beside `path`."""
        folder = pathlib.Path(path).parent
        (folder / "vocab.txt").write_text("\n".join(self.tokens) + "\n")
        (folder / "tokenizer_config.json").write_text('{"model_max_length": 1024, "tokenizer_class": "EsmTokenizer"}\n')
        special = {role: f"<{role[:3]}>" for role in ("cls_token", "eos_token", "pad_token", "unk_token")}
        (folder / "special_tokens_map.json").write_text(json.dumps(special | {"mask_token": "<mask>"}) + "\n")
