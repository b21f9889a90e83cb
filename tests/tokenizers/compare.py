#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Attendant's tokenizer with the `tokenizers` library, on random texts and every tokenizer.json of the goldens.

    compare.py TOKENIZE_TEXTS [--seconds S | --requests N] [--seed N] [--characters] [TOKENIZER_JSON ...]

TOKENIZE_TEXTS is the program of this folder. Ids, segments and offsets, in characters and in bytes, must be equal: of
single texts and of pairs, cut on both sides or whole. The first difference of a tokenizer is printed with its shortest
text; the exit code is then 1, and so where the library failed itself in more than a tenth of the requests.
--seconds is the time for all tokenizers together; --requests, about so many for each of them, is the same run on every
machine. --characters goes through every Unicode scalar value instead, which
takes a few minutes for each tokenizer. ATTENDANT_TEST_MODEL adds a model's tokenizer.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
sys.path.insert(0, str(GOLDEN / "tokenizer"))
import make_corpus  # noqa: E402

BATCH = 16  # requests on the way: all together fit in a pipe
LEAST_COMPARED = 0.9  # of the requests
RANGES = [(0x20, 0x7F)] * 6 + [
    (0x00, 0x100), (0x80, 0x250), (0x250, 0x370), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE00),
    (0xE00, 0x1200), (0x1100, 0x1200), (0x1AB0, 0x1B00), (0x1E00, 0x2000), (0x2000, 0x2070), (0x2070, 0x2C00), (0x2E80, 0x3100),
    (0x3100, 0x3400), (0x4E00, 0xA000), (0xA640, 0xABFF), (0xAC00, 0xD7A4), (0xF900, 0x10000), (0x10000, 0x12000),
    (0x16000, 0x17000), (0x1D000, 0x1D800), (0x1E000, 0x1FB00), (0x20000, 0x30000), (0xE0000, 0xE0200), (0, 0x110000)]
FRAGMENTS = [" ", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0301", "\u0323\u0307", "\u0344", "\u302e", "\u0f73\u0f71",
             "\u0130", "\u00df", "\ufb01", "\ufdfa", "\u00bd", "\u200b", "\u200d", "\ufe0f", "\u1112\u1161\u11ab", "\ud55c", "\u0958", "\U0001d165",
             "\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2581", "\u0120", "##", "'s", "'S", "12", "\u0600", "\x00", "\x01", "\ufffd"]


class TextMaker:
    """Random texts: characters of all scripts, awkward fragments, tokens of the vocabulary, changed texts of the corpus."""

    def __init__(self, rng, tokenizer):
        self.rng = rng
        self.listed = (make_corpus.PLAIN + make_corpus.SPECIAL + make_corpus.ACCENTS + make_corpus.SCRIPTS + make_corpus.CASE
                       + make_corpus.INVISIBLE + make_corpus.SYMBOLS)
        self.tokens = sorted(tokenizer.get_vocab())
        self.added = sorted(token.content for token in tokenizer.get_added_tokens_decoder().values())

    def character(self):
        low, high = self.rng.choice(RANGES)
        code = self.rng.randrange(low, high)
        return "x" if 0xD800 <= code < 0xE000 else chr(code)

    def part(self):
        kind = self.rng.random()
        if kind < 0.45:
            return self.character()
        if kind < 0.65:
            return self.rng.choice(FRAGMENTS)
        if kind < 0.9 or not self.added:
            return self.rng.choice(self.tokens)
        return self.rng.choice(self.added)

    def changed(self):
        text = self.rng.choice(self.listed)[:120]
        for _ in range(self.rng.randrange(4)):
            begin = self.rng.randrange(len(text) + 1)
            end = min(len(text), begin + self.rng.randrange(4))
            put = self.rng.choice(["", self.part(), text[begin:end] * 2, text[begin:end][::-1]])
            text = text[:begin] + put + text[end:]
        return text

    def text(self):
        if self.rng.random() < 0.4:
            return self.changed()
        return "".join(self.part() for _ in range(self.rng.choice((0, 1, 2, 3, 5, 8, 13, 30))))

    def request(self):
        request = {"text": self.text()}
        if self.rng.random() < 0.2:
            request["second"] = self.text()
        if self.rng.random() < 0.3:
            request |= {"max_tokens": self.rng.randrange(6, 20), "left": self.rng.random() < 0.5}
        return request


class Ours:
    """A process that answers with Attendant's tokenizer."""

    def __init__(self, program, path):
        self.folder = tempfile.TemporaryDirectory()
        shutil.copy(path, pathlib.Path(self.folder.name) / "tokenizer.json")
        self.process = subprocess.Popen([program, self.folder.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answers(self, requests):
        self.process.stdin.write("".join(json.dumps(request) + "\n" for request in requests))
        self.process.stdin.flush()
        lines = [self.process.stdout.readline() for _ in requests]
        if not all(lines):
            raise SystemExit(f"{self.process.args} ended with {self.process.wait()}; it had {json.dumps(requests)}")
        return [json.loads(line) for line in lines]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def offsets_in_bytes(encoding, texts):
    """Those that the library has, in characters of the text that each token comes from."""
    starts = [[0, *itertools.accumulate(len(character.encode()) for character in text)] for text in texts]
    return [[0, 0] if text is None else [starts[text][begin], starts[text][end]]
            for text, (begin, end) in zip(encoding.sequence_ids, encoding.offsets)]


def expected(tokenizer, request):
    """The library's answer; None where it fails itself."""
    tokenizer.no_truncation()
    if "max_tokens" in request:
        tokenizer.enable_truncation(request["max_tokens"], direction="left" if request["left"] else "right")
    try:
        encoding = tokenizer.encode(request["text"], request.get("second"))
    except BaseException as error:  # a panic of the library is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None
    texts = [request["text"], request.get("second", "")]
    return {"ids": encoding.ids, "segments": encoding.type_ids, "characters": [list(pair) for pair in encoding.offsets],
            "bytes": offsets_in_bytes(encoding, texts)}


def difference(tokenizer, request, answer):
    """What differs: "" where nothing does, None where there is nothing to compare."""
    wanted = expected(tokenizer, request)
    if wanted is None or lacks_template(request, answer):
        return None
    if "error" in answer:
        return answer["error"]
    for key, values in wanted.items():
        if answer[key] != values:
            return f"{key}: {answer[key]}, the library has {values}"
    return ""


def lacks_template(request, answer):
    """Whether Attendant refuses a pair because tokenizer.json does not say how to join two texts."""
    return "second" in request and "no template for two texts" in answer.get("error", "")


def shortened(tokenizer, ours, request):
    """The request without any character that is not needed for a difference."""
    for key in ("second", "text"):
        at = 0
        while key in request and at < len(request[key]):
            less = request | {key: request[key][:at] + request[key][at + 1:]}
            if difference(tokenizer, less, ours.answers([less])[0]):
                request = less
            else:
                at += 1
    return request


class Comparison:
    """Of a tokenizer: how many requests could be compared, and the first one whose answers differ."""

    def __init__(self, tokenizer, ours):
        self.tokenizer, self.ours = tokenizer, ours
        self.asked = self.compared = 0
        self.found = None

    def add(self, requests):
        for request, answer in zip(requests, self.ours.answers(requests)):
            if lacks_template(request, answer):
                continue
            self.asked += 1
            differs = difference(self.tokenizer, request, answer)
            self.compared += differs is not None
            if differs:
                request = shortened(self.tokenizer, self.ours, request)
                self.found = f"{json.dumps(request)}\n  {difference(self.tokenizer, request, self.ours.answers([request])[0])}"
                return

    def fault(self):
        if self.found is None and self.compared < LEAST_COMPARED * max(self.asked, 1):
            return f"the library failed itself in {self.asked - self.compared}"
        return self.found


def random_requests(rng, tokenizer, seconds, most):
    maker = TextMaker(rng, tokenizer)
    end, made = time.monotonic() + seconds, 0
    while made < most if most else time.monotonic() < end:
        yield [maker.request() for _ in range(BATCH)]
        made += BATCH


def character_requests():
    for first in range(0, 0x110000, BATCH):
        codes = [code for code in range(first, first + BATCH) if not 0xD800 <= code < 0xE000]
        yield [{"text": f"a{chr(code)} {chr(code)}b"} for code in codes]


def tokenizer_files():
    files = [path for path in sorted((GOLDEN / "tokenizer" / "families").glob("*.json")) if '"model":{' in path.read_text()]
    files += sorted(GOLDEN.glob("*/*/tokenizer.json"))
    model = os.environ.get("ATTENDANT_TEST_MODEL")
    files += [pathlib.Path(model) / "tokenizer.json"] if model else []
    return list({path.read_bytes(): path for path in files}.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--characters", action="store_true")
    arguments = parser.parse_args()
    files = arguments.files or tokenizer_files()
    failed = 0
    for path in files:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        rng = random.Random(f"{arguments.seed} {path.stem} {path.parent.name}")
        batches = (character_requests() if arguments.characters
                   else random_requests(rng, tokenizer, arguments.seconds / len(files), arguments.requests))
        with Ours(arguments.program, path) as ours:
            comparison = Comparison(tokenizer, ours)
            for requests in batches:
                comparison.add(requests)
                if comparison.found:
                    break
        fault = comparison.fault()
        failed += fault is not None
        print(f"{path}: {comparison.asked} requests, {comparison.compared} compared"
              + (f", seed {arguments.seed}: {fault}" if fault else ", all equal"), flush=True)
    if not files:
        raise SystemExit("no tokenizer.json found")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
