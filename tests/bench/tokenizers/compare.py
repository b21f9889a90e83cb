#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of Attendant's tokenizers beside the `tokenizers` library, each on one thread, in turns.

    export ATTENDANT_REQUIREMENTS=tests/bench/tokenizers/requirements.txt
    tests/integration/python.sh tests/bench/tokenizers/compare.py build/release/bin/tokenizer_bench [--rounds N] [--json FILE]

The texts are passages of 60 words or more from the message catalogs of Django and Wagtail. The tokenizers are trained on
them: WordPiece as BERT's, byte-level BPE as RoBERTa's, Unigram as XLM-R's, 4,000 tokens each. Both sides must find the
same number of tokens. Times are processor times; a ratio is the median over rounds. Below the mark the exit code is 1.
The library keeps the words that it has seen in a cache, and every sentence comes several times: it is at its best here.
Where words have no spaces between them, it would find whole sentences again; so Chinese texts are pieces of sentences,
joined anew.
"""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before the library is loaded
os.environ["RAYON_NUM_THREADS"] = "1"

import argparse  # noqa: E402
import gettext  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import random  # noqa: E402
import re  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import django  # noqa: E402
import wagtail  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "golden" / "tokenizer"))
import make_families  # noqa: E402

MARK = 2.0
VOCAB = 4000
PASS_CHARACTERS = 200_000
LANGUAGES = {"English": "en", "German": "de", "Korean": "ko", "Chinese": "zh_Hans"}


def sentences(language):
    """The messages of the catalogs in a language, without markup and places for values."""
    found = set()
    folder = "de" if language == "en" else language
    for package in (django, wagtail):
        for path in sorted(pathlib.Path(package.__file__).parent.glob(f"**/locale/{folder}/LC_MESSAGES/django.mo")):
            with path.open("rb") as file:
                catalog = gettext.GNUTranslations(file)._catalog
            for message, translated in catalog.items():
                text = message if language == "en" else translated
                if message and isinstance(message, str) and isinstance(text, str) and "\x04" not in text:
                    found.add(re.sub(r"%\(\w+\)[sd]|%[sd]|\{\w*\}|<[^>]*>|\s+", " ", text).strip())
    return sorted(text for text in found if len(text) > 8)


def passages(language):
    """About PASS_CHARACTERS characters, in passages of several sentences; the sentences come round again."""
    rng = random.Random(language)
    listed = sentences(language)
    whole = "".join(listed)
    texts, total = [], 0
    while total < PASS_CHARACTERS:
        text = ""
        while len(text.split()) < 60 and len(text) < 400:
            if language == "zh_Hans":
                begin = rng.randrange(len(whole))
                text += whole[begin:begin + rng.randrange(4, 24)]
            else:
                text += rng.choice(listed) + " "
        texts.append(text.strip())
        total += len(text)
    return texts


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer, trainers.WordPieceTrainer(vocab_size=VOCAB, special_tokens=["[UNK]"], show_progress=False)


def byte_bpe():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer, trainers.BpeTrainer(vocab_size=VOCAB, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                          show_progress=False)


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer, trainers.UnigramTrainer(vocab_size=VOCAB, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)


MODELS = {"WordPiece": word_piece, "BPE": byte_bpe, "Unigram": unigram}


def trained(name, texts, folder):
    """Trains a tokenizer and writes it into the folder; gives what the library reads back."""
    tokenizer, trainer = MODELS[name]()
    tokenizer.train_from_iterator(texts, trainer)
    contents = json.loads(tokenizer.to_str())
    if name == "Unigram":  # the library has no trainer for sentencepiece's table: a small one, which costs the same
        replace = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
        contents["normalizer"] = {"type": "Sequence", "normalizers": [make_families.precompiled(), replace]}
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(contents), encoding="utf-8")
    return Tokenizer.from_file(str(path))


def library_pass(tokenizer, texts):
    start = time.thread_time_ns()
    encodings = tokenizer.encode_batch_fast(texts)
    return sum(len(encoding) for encoding in encodings), time.thread_time_ns() - start


class Ours:
    def __init__(self, program, folder, texts):
        path = folder / "texts.json"
        path.write_text(json.dumps(texts), encoding="ascii")
        self.process = subprocess.Popen([program, folder, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        tokens, nanoseconds = self.process.stdout.readline().split()
        return int(tokens), int(nanoseconds)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(program, tokenizer, folder, texts, rounds):
    """Tokens, and tokens per second of both sides, each the median; and the median ratio."""
    ours = Ours(program, folder, texts)
    tokens, mine, others = 0, [], []
    for number in range(rounds + 1):
        tokens, nanoseconds = ours.run()
        count, library = library_pass(tokenizer, texts)
        if tokens != count:
            raise SystemExit(f"{folder}: Attendant finds {tokens} tokens, the library {count}")
        if number > 0:  # the first warms both
            mine.append(tokens / nanoseconds * 1e9)
            others.append(tokens / library * 1e9)
    ours.close()
    ratio = statistics.median(mine_rate / other for mine_rate, other in zip(mine, others))
    return {"tokens": tokens, "attendant": statistics.median(mine), "library": statistics.median(others), "ratio": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    texts = {name: passages(language) for name, language in LANGUAGES.items()}
    rows = []
    print("| model | language | Attendant, tokens/s | library, tokens/s | ratio | mark |\n|---|---|---|---|---|---|")
    for model in MODELS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            tokenizer = trained(model, [text for listed in texts.values() for text in listed], folder)
            for language, listed in texts.items():
                row = {"model": model, "language": language} | measure(arguments.program, tokenizer, folder, listed, arguments.rounds)
                rows.append(row)
                print(f"| {model} | {language} | {row['attendant']:,.0f} | {row['library']:,.0f} | {row['ratio']:.2f} | {MARK} |",
                      flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="ascii")
    raise SystemExit(0 if all(row["ratio"] >= MARK for row in rows) else 1)


if __name__ == "__main__":
    main()
