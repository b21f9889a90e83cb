#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tokenizer's golden files with the `tokenizers` library. The same on every run.

    make_corpus.py MODEL_DIR      needs: pip install tokenizers (made with 0.23.3)

corpus.jsonl      hostile texts and what the checkpoint's tokenizer.json makes of them, one per line:
                  {"text", "ids", "offsets"} or, cut at max_tokens, {"text", "max_tokens", "ids", "offsets"}; the
                  offsets, in characters, as their checksum
characters.jsonl  every Unicode character's way through BERT's normalizer and pre-tokenizer, as one
                  64-bit FNV-1a hash per 4096 code points: {"first", "hash"}
"""

import json
import pathlib
import random
import sys
import zlib

from tokenizers import Tokenizer, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).parent
BLOCK = 0x1000

PLAIN = [
    "", " ", "   ", "\t\n\r ", "a", "Hello, World!", "The quick brown fox jumps over the lazy dog.",
    "unaffable", "UNAFFABLE", "embeddings tokenization antidisestablishmentarianism",
    "don't can't won't o'clock rock'n'roll", "e-mail: someone@example.com, https://example.com/?a=b&c=d#e",
    "3.14159 1,000,000 1e-9 0xFF 50% $9.99 +1-800-555-0100", "#hashtag @mention ##ing ##", "a##b",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "...", "?!?!?!", "_under_score_", "C++ C# F# .NET",
    "{\"json\": [1, 2, {\"k\": null}]}", "int main() { return 0; }", "SELECT * FROM t WHERE x = 'y'; --",
    "line one\nline two\r\nline three\rline four", "tab\tseparated\tvalues",
]
SPECIAL = [
    "[SEP]", "[CLS]", "[MASK]", "[PAD]", "[UNK]", "[CLS] a [SEP]", "a[SEP]b", "[SEP][SEP][SEP]", "x[MASK]y[MASK]z",
    "The capital of France is [MASK].", "[sep]", "[Sep]", "[ SEP ]", "[SEP", "SEP]", "[[SEP]]", "[SE[SEP]P]",
    "[MASK][MASK]", "[PAD] [PAD]", "word[PAD]", "[PAD]word", "\u4e2d[SEP]\u6587", "e\u0301[SEP]\u0301e",
    "[SEP]\u0301", "[\u200bSEP]", "[SEP\u0000]", "\uff3bSEP\uff3d", "[UNK]ed", " [SEP] ", "\n[CLS]\n", "[CLS][SEP][PAD][MASK][UNK]",
]
ACCENTS = [
    "caf\u00e9", "cafe\u0301", "CAF\u00c9", "na\u00efve fa\u00e7ade r\u00e9sum\u00e9", "\u00c5ngstr\u00f6m A\u030angstro\u0308m \u212b",
    "Ti\u1ebfng Vi\u1ec7t \u0110\u1eb7ng Th\u1ecb", "\u00f8\u00d8 \u0142\u0141 \u0111\u0110 \u00df\u1e9e \u00e6\u0153 \u00fe\u00f0", "Zalgo: Z\u0351\u036b\u0343a\u0363\u0366l\u0348\u0356g\u0321\u033ao\u0322\u0327",
    "e" + "\u0301" * 50, "e" + "\u0301" * 500, "\u0301", "\u0301\u0301\u0301", "\u0301abc", "a \u0301 b", "a\u0323\u0307 a\u0307\u0323 \u1e69 s\u0323\u0307 s\u0307\u0323 \u1e9b\u0323",
    "\u0344 \u0385 \u0390 \u03b0 \u1fee", "\u0958 \u0915\u093c \u09dc \u0a33 \u0b5c \u0e33 \u0f43 \u0f73 \u0f75 \u0f81", "\u302e\u302f a\u302fb\u302e \U0001d165\U0001d16d", "\u0345a \u03b1\u0345\u0301 \u03b1\u0301\u0345",
    "\u1ab0\u1dc0\u20d0\ufe20 combining", "\u0f71\u0f72\u0f74\u0f71", "\u3099\u309a \u304b\u3099 \u304c \u306f\u309a \u3071",
]
SCRIPTS = [
    "\u4e2d\u6587", "\u6211\u7231\u673a\u5668\u5b66\u4e60", "abc\u4e2ddef", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8", "\u3042\u3044\u3046\u3048\u304a \u30ab\u30bf\u30ab\u30ca \uff76\uff9e\uff80\uff76\uff85", "\u3400\u4dbf \u4e00\u9fff \uf900\ufaff",
    "\U00020000\U0002a6df \U0002a700\U0002b81f \U0002b820\U0002b91f \U0002b920\U0002ceaf \U0002ceb0 \U0002f800\U0002fa1f \U00030000", "\u3001\u3002\u300c\u300d\u3000\u301c\u30fb", "\uff21\uff22\uff23 \uff11\uff12\uff13 \uff01\uff1f", "\u2f00\u2e80\u31c0\u3105",
    "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\u1112\u1161\u11ab", "\u1112\u1161 \u11ab", "\uac00\uac01\ud7a3", "\u3131\u314f\u3134 \uffa1\uffc2", "\u1100\u1161\u11a8\u11a8 \ua960\ud7b0\ud7cb", "\ud55c\u0301\uad6d",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u0436\u0438\u043a \u0439 \u0456\u0457", "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u039f\u0394\u039f\u03a3 \u03c3\u03c2\u03a3 \u03a3", "\u0531\u0561 \u10a0\u2d00 \u1c90\u10d0 \u13a0\uab70 \u0587",
    "\u05e9\u05dc\u05d5\u05dd \u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645\u061f \u0640\u0640", "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 \u0660\u0661\u0662 \u06f4", "\u202bRTL\u202c \u200fmark\u200e \u2067iso\u2069", "abc \u05d0\u05d1\u05d2 123 \u0627\u0628\u062c",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0926\u0941\u0903\u0916", "\u09ac\u09be\u0982\u09b2\u09be \u0ba4\u0bae\u0bbf\u0bb4\u0bcd \u0c24\u0c46\u0c32\u0c41\u0c17\u0c41 \u0d2e\u0d32\u0d2f\u0d3e\u0d33\u0d02", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u0e01\u0e33 \u0ea5\u0eb2\u0ea7", "\u1019\u103c\u1014\u103a\u1019\u102c \u1797\u17b6\u179f\u17b6", "\u0f56\u0f7c\u0f51\u0f0b\u0f61\u0f72\u0f42", "\u12a0\u121b\u122d\u129b \u1362\u1361 \u166d\u166e", "\u1820\u1885\u1886\u180e\u180b",
]
CASE = [
    "\u0130stanbul \u0130 I i \u0131", "ISPARTA \u0131sparta I\u0307 i\u0307", "TITLE \u01c5 \u01c4 \u01c6 \u1f88", "\ufb01 \ufb02 \ufb03 \ufb00 \ufb06 \ufb13", "\u1e9e STRASSE stra\u00dfe", "\u2160\u2170 \u24b6\u24d0 \u2126 \u212a", "\ua64a\u1c88 \u1c89 \ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc", "\U00010400 \U000118a0 \U0001e900 \U00010d50\U00010d65 \U00016ea0\U00016eb8",
    "\U0001d400\U0001d41a \U0001d54f \U0001d7d8 \u210d\u2115", "x\u00b2 H\u2082O \u00bd \u2153 \u2116 \u2122 \u00ae", "\u02b0\u02b2 \u1d2c \ua71b",
]
INVISIBLE = [
    "\u0000", "a\u0000b", "\u0001\u0002\u001f\u007f\u0080\u009f", "a\u000bb\u000cc", "a\u0085b", "a\u00adb soft\u00adhyphen", "zero\u200bwidth\u200cnon\u200djoiner\u2060word", "\ufeffBOM", "a\ufeffb",
    "a\u00a0b\u1680c\u2000d\u2009e\u200af\u202fg\u205fh\u3000i", "a\u2028b\u2029c", "\u180ea\u180eb", "\u061c\u200e\u200f\u202a\u202e\u2066\u2069x", "\ufffd", "a\ufffdb", "\ufffc obj", "\ufff9a\ufffab\ufffb", "\U000e0001\U000e0041\U000e007f tags", "x\ufe0f x\ufe0e \U000e0100",
    "\u115f\u1160\u3164\uffa0 fillers", "\u2800 braille \u2801", "\ue000\uf8ff private \U000f0000\U0010fffd", "\ufdd0\ufdef\ufffe\uffff \U0001fffe\U0010ffff", "\u0378\u0379 \u05ff \U000e0fff \U0003fffd unassigned", "a\u0378b", "\ufffe", "\u08e2\u0890\u0891 \U000110cd \U00013430\U0001343f \U000110bd", "\u0600\u06dd\u070f\u0605",
]
SYMBOLS = [
    "\U0001f600", "I \u2764\ufe0f NY \U0001f5fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea", "a\U0001f600b", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "1\ufe0f\u20e3 #\u20e3", "\u2014 \u2013 \u2026 \u201cquotes\u201d \u2018x\u2019 \u00ab\u00bb \u2039\u203a", "\u00a1Hola! \u00bfQu\u00e9? \u00a7 \u00b6 \u00b7 \u00bf",
    "\u20ac5 \u00a35 \u00a55 \u20bf", "\u2200x\u2208\u211d: x\u00b2\u22650 \u2211\u222b\u221a\u221e", "\u2190\u2191\u2192 \u2588\u2591 \u25a0\u25cf \u2660", "a\u00d7b\u00f7c \u00b1 \u2212 \u2044 \u2052", "\u203f\u2040\u2054\ufe33 \u2e3a \u2e52 \u2e5d", "\u1734\ua9bd\U000111c9\U0001171e", "\u061d\u09fd\u0a76\u0c77\u0c84 \U00016fe2 \U0001e95e", "~`^+=<>|$ \u02c6\u02dc\u00a8\u00b4\u00b8\u00af",
]


def long_texts():
    """Words at the limit of 100 characters, texts at the limit of a truncation, and far beyond."""
    for length in (99, 100, 101, 102, 199, 200, 1000):
        yield "a" * length
        yield "\u00e9" * length
        yield "e\u0301" * length
        yield "\U0001f600" * length
        yield "x " + "ab" * (length // 2) + " y"
    yield "\u0130" * 100
    yield "a\u200b" * 100 + "a"
    yield "a" * 100 + "\u0301" * 20
    yield "\u4e2d" * 150
    yield "-" * 120
    yield "a-" * 120
    yield "the " * 600
    yield "supercalifragilisticexpialidocious " * 80
    yield "[SEP]" * 300
    yield "[SEP] " * 300
    yield " " * 3000 + "end"
    yield "x" + " " * 5000
    yield ("lorem ipsum dolor sit amet " * 200) + "\u00e9nd"  # beyond one chunk of normalization
    yield "\u00e9t\u00e9 " * 1500


def random_texts(rng):
    """Mixes of Unicode ranges and awkward fragments."""
    ranges = [(0x20, 0x7F)] * 5 + [
        (0x00, 0x20), (0x80, 0x250), (0x250, 0x370), (0x300, 0x370), (0x370, 0x530), (0x530, 0x700), (0x700, 0x900),
        (0x900, 0xE00), (0xE00, 0x1100), (0x1100, 0x1200), (0x1200, 0x1800), (0x1800, 0x2000), (0x1AB0, 0x1B00), (0x1DC0, 0x1E00),
        (0x2000, 0x2070), (0x2070, 0x2E00), (0x2E00, 0x3100), (0x3100, 0x4E00), (0x4E00, 0xA000), (0xA000, 0xAC00), (0xAC00, 0xD7A4),
        (0xE000, 0xFB00), (0xFB00, 0x10000), (0x10000, 0x12000), (0x12000, 0x1D000), (0x1D000, 0x1D800), (0x1F000, 0x1FB00),
        (0x20000, 0x32000), (0xE0000, 0xE0200), (0xF0000, 0x110000)]
    fragments = ["[SEP]", "[MASK]", "[SEP", "##", "ing", "un", "the", "ly", "\u0130", "I\u0307", "\u00df", "\ufb01", "\u200d", "\ufe0f", "\u0345", "\u302e",
                 "\u0316", "\u0301", "\u093c", "\u0f71", "\U0001d165", "\r\n", "\t", "\u3000", "\u00a0", "\u2028", "\u0085", " ", " "]
    for _ in range(560):
        low, high = rng.choice(ranges)
        text = []
        for _ in range(rng.choice((1, 2, 4, 8, 16, 40, 90))):
            if rng.random() < 0.2:
                text.append(rng.choice(fragments))
                continue
            if rng.random() < 0.3:
                low, high = rng.choice(ranges)
            text.append(chr(rng.randrange(low, high)))
        yield "".join(text)


def offsets_checksum(encoding):
    """CRC-32 of "begin end begin end ..."."""
    return zlib.crc32(" ".join(f"{begin} {end}" for begin, end in encoding.offsets).encode())


def line_of(tokenizer, text, **options):
    encoding = tokenizer.encode(text)
    return {"text": text, **options, "ids": encoding.ids, "offsets": offsets_checksum(encoding)}


def corpus_lines(tokenizer):
    rng = random.Random(20240607)
    listed = PLAIN + SPECIAL + ACCENTS + SCRIPTS + CASE + INVISIBLE + SYMBOLS
    texts = listed + list(long_texts())
    tokenizer.no_truncation()
    short = texts + list(random_texts(rng))
    lines = [line_of(tokenizer, text) for text in short if len(text) < 1500]
    for max_tokens in (2, 3, 16, 256):
        tokenizer.enable_truncation(max_tokens)
        chosen = texts if max_tokens == 16 else listed[::9] + list(long_texts())[-14:]
        lines += [line_of(tokenizer, text, max_tokens=max_tokens) for text in chosen]
    return lines


def fnv1a(data, value=0xCBF29CE484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def character_lines():
    normalizer = normalizers.BertNormalizer()
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def words(text):
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]

    for first in range(0, 0x110000, BLOCK):
        value = fnv1a(b"")
        for character in map(chr, range(first, first + BLOCK)):
            if "\ud800" <= character <= "\udfff":
                continue
            # The second text shows the character's combining class: U+302E has 224 and is kept.
            for text in ("A" + character + "b", "a\u302e" + character + "\u302e"):
                value = fnv1a(("\n".join(words(text)) + "\n\n").encode(), value)
        yield {"first": first, "hash": f"{value:016x}"}


def write(name, lines):
    with open(HERE / name, "w", encoding="ascii") as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def main():
    tokenizer = Tokenizer.from_file(str(pathlib.Path(sys.argv[1]) / "tokenizer.json"))
    tokenizer.no_padding()
    write("corpus.jsonl", corpus_lines(tokenizer))
    write("characters.jsonl", character_lines())


if __name__ == "__main__":
    main()
