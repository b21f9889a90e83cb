#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny folders with a sentencepiece model and no tokenizer.json, and what transformers makes of hostile texts with
them. The same on every run.

    make_sentencepiece.py [OUT_DIR]      needs: pip install sentencepiece transformers protobuf (made with 0.2.3, 5.23)

FAMILY/...   the sentencepiece model under the family's file name, tokenizer_config.json
ids.json     {FAMILY: the ids of each text of families/texts.json}
pairs.json   {FAMILY: [[two texts, ids, segments], ...]}"""

import io
import json
import pathlib
import shutil
import sys
import tempfile

import sentencepiece
import transformers

import make_families

HERE = pathlib.Path(__file__).parent
# What the normalization of real models does, in a few of its rules: a small table.
RULES = {"\uff21": "A", "\u2460": "1", "\ufb01": "fi", "\u3000": " ", "\u00ad": "", "e\u0301": "\u00e9", "\t": " ", "\n": " "}
BERT = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]",
        "unk_piece": "[UNK]"}
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "bos_piece": "[CLS]", "eos_piece": "[SEP]",
          "user_defined_symbols": ["[MASK]"]}
# family: (class of transformers, file, options of the trainer, tokenizer_config.json)
FAMILIES = {
    "albert": ("AlbertTokenizer", "spiece.model", ALBERT, {}),
    "albert_cased": ("AlbertTokenizer", "spiece.model", ALBERT, {"do_lower_case": False, "keep_accents": True}),
    "xlm_roberta": ("XLMRobertaTokenizer", "sentencepiece.bpe.model", {"user_defined_symbols": ["<user>"]}, {}),
    "camembert": ("CamembertTokenizer", "sentencepiece.bpe.model", {}, {}),
    "t5": ("T5Tokenizer", "spiece.model", {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, {"extra_ids": 7}),
    "deberta_v2": ("DebertaV2Tokenizer", "spm.model", BERT, {"do_lower_case": True, "split_by_punct": True}),
}


def train(options):
    written = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        for source, target in RULES.items():
            rules.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(make_families.TRAINING * 3), model_writer=written, vocab_size=260, model_type="unigram",
            normalization_rule_tsv=rules.name, hard_vocab_limit=False, num_threads=1, minloglevel=2, **options)
    return written.getvalue()


def make(out, family, texts):
    name, file, options, config = FAMILIES[family]
    folder = out / family
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / file).write_bytes(train(options))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **config}, indent=1) + "\n")
    whole = getattr(transformers, name).from_pretrained(folder)
    with_segments = "token_type_ids" in whole.model_input_names
    tokenizer = whole.backend_tokenizer
    tokenizer.no_truncation()
    tokenizer.no_padding()
    pairs = []
    for first, second in zip(texts[:20], texts[20:40]):
        encoded = tokenizer.encode(first, second)
        pairs.append([first, second, encoded.ids, encoded.type_ids if with_segments else [0] * len(encoded.ids)])
    return [tokenizer.encode(text).ids for text in texts], pairs


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "sentencepiece"
    texts = json.loads((HERE / "families" / "texts.json").read_text(encoding="utf-8"))
    ids, pairs = {}, {}
    for family in FAMILIES:
        ids[family], pairs[family] = make(out, family, texts)
    for name, value in (("ids.json", ids), ("pairs.json", pairs)):
        (out / name).write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
