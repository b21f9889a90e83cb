#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small tokenizer files of every supported kind, and what the `tokenizers` library makes of hostile texts.
The same on every run.

    make_families.py [OUT_DIR]      needs: pip install tokenizers (made with 0.23.3)

NAME.json        a tokenizer.json
texts.json       the texts of make_corpus.py and a few more
ids.json         {NAME: [the ids of each text]}
offsets.json     {NAME: [the checksum of the offsets of each text]}: make_corpus.offsets_checksum
pairs.json       {NAME: [[two texts, the limit of tokens, ids, segments, the checksum of the offsets], ...]}
characters.json  {NAME: CRC-32 of the ids of "a" + C + " " + C + "b" for every Unicode character C}
"""

import base64
import json
import pathlib
import random
import struct
import sys
import zlib

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

import make_corpus

HERE = pathlib.Path(__file__).parent
LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
MORE = [
    "I'm you're we'VE it'S 'sdon't '\u017f 'S 'Re", "a  b   c \n d\n\n  e\r\n\r\n f \t\u3000 g  ", "  leading", "trailing  ", " ", "  ",
    "12345 1 22 333 4444 \u0663\u0664 x\u00b2 \u2167 \u4e09", "f(x) = {y: 1};  // \u00e4\u00f6", "<s> a </s> b<mask> c <mask>d  <mask>  e",
    "low lower lowest newer wider lowlowlow", "\u2581 \u2581\u2581a\u2581b \u2581", "a\u2581b", "\ufb01\u0301 \ufdfa \u33a5 \u00bd \u2460 \u00a8a \u00a8",
    "e\u0301\u0301 E\u0301 \u0958 \u1e9b\u0323 \u212b \uac00\u11a8 \u1100\u1161\u11a8", "user <unk> <unk>x x<unk>y", "\U0001f469\u200d\U0001f467 \r\n \u0600a \u0600 b",
    "oneword ones one. one", "lorem ipsum " * 60, "abcabcabcab" * 40, "\u00e9\u00e8" * 90, "zzzz qqqq \u4e2d\u6587\u4e2d\u6587",
]
TRAINING = [
    "the quick brown fox jumps over the lazy dog and the lower newer wider lowest of them all, isn't it? don't you're we've",
    "caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u00fcber stra\u00dfe \u4e2d\u6587\u5b57 \ud55c\uad6d\uc5b4 \u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 12 123 2024 3.14", "hello, world! tokenization embedding lorem ipsum dolor sit amet",
    "aaaa abab abcabc aabb bbaa abcabcabc  spaces   here\n\nlines\r\n", "(a) [b] {c} <d> a_b c-d e/f #g @h $5 50% x=1; y+=2",
] * 4


def texts():
    rng = random.Random(20240608)
    listed = (make_corpus.PLAIN + make_corpus.SPECIAL[:12] + make_corpus.ACCENTS + make_corpus.SCRIPTS + make_corpus.CASE
              + make_corpus.INVISIBLE + make_corpus.SYMBOLS + MORE)
    return listed + [text for text in list(make_corpus.random_texts(rng))[:240] if len(text) < 60]


def bpe(pre_tokenizer, vocab_size=400, normalizer=None, alphabet=(), specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
        **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    affixes = {key: options[key] for key in ("continuing_subword_prefix", "end_of_word_suffix") if key in options}
    tokenizer.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(specials), initial_alphabet=list(alphabet), show_progress=False, **affixes))
    return tokenizer


def roberta():
    tokenizer = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), 420, alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    return tokenizer


def modernbert():
    tokenizer = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True), 420, normalizers.NFC(),
                    pre_tokenizers.ByteLevel.alphabet(), ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"))
    tokenizer.post_processor = processors.TemplateProcessing("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                                                             special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False, special=True)])
    tokenizer.add_tokens([AddedToken("  ", normalized=True), AddedToken("one", single_word=True, normalized=True)])
    return tokenizer


def llama():
    tokenizer = bpe(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        430, normalizers.NFC(), pre_tokenizers.ByteLevel.alphabet(), ignore_merges=True)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing("<s> $A </s>:1", special_tokens=[("<s>", 0), ("</s>", 2)])])
    return tokenizer


def prefix_space():
    return bpe(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                        pre_tokenizers.ByteLevel(add_prefix_space=True)]), 380,
               alphabet=pre_tokenizers.ByteLevel.alphabet())


def gemma():
    bytes_ = [f"<0x{i:02X}>" for i in range(256) if i != 0xE4]
    tokenizer = bpe(pre_tokenizers.Split(" ", "merged_with_previous"), 420, normalizers.Replace(" ", "\u2581"),
                    specials=["<s>", "<pad>", "</s>", "<unk>", "<mask>"] + bytes_, unk_token="<unk>", fuse_unk=True,
                    byte_fallback=True)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def clip():
    tokenizer = bpe(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(),
                                        pre_tokenizers.Punctuation("contiguous")]),
               200, normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()]), unk_token="<unk>",
               end_of_word_suffix="</w>")
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def prefixed():
    return bpe(pre_tokenizers.WhitespaceSplit(), 200, normalizers.NFKD(), unk_token="<unk>", continuing_subword_prefix="##")


def splits(behavior, invert):
    return bpe(pre_tokenizers.Split(Regex(r"[\s,\-0-9]+|(?:lo|w)(?i:er)?|\P{L}{2,3}"), behavior, invert), 260,
               normalizers.NFD(), unk_token="<unk>")


def double_array(keys):
    """darts-clone's units for {key bytes: value}; every node takes a block of 256 units of its own."""
    nodes = {b""}
    for key in keys:
        nodes |= {key[:i] for i in range(len(key) + 1)}
    bases = {node: 256 * (i + 1) for i, node in enumerate(sorted(nodes))}
    units = [0] * (256 * (len(nodes) + 1))

    def unit(at, node, label):  # offsets are relative, by exclusive or, and here multiples of 256
        return ((at ^ bases[node]) >> 8) << 10 | 1 << 9 | (node in keys) << 8 | label

    for node, base in bases.items():
        at = 0 if node == b"" else bases[node[:-1]] ^ node[-1]
        bases[node] = base ^ (at & 0xFF)
        units[at] = unit(at, node, node[-1] if node else 0)
    return units


def charsmap(rules):
    """Sentencepiece's table for {text: replacement}."""
    replacements, keys = b"", {}
    for text, replacement in sorted(rules.items()):
        keys[text.encode()] = len(replacements)
        replacements += replacement.encode() + b"\0"
    units = double_array(keys)
    for key, value in keys.items():
        at = 0
        offset = lambda u: (u >> 10) << ((u & 1 << 9) >> 6)
        at ^= offset(units[at])
        for byte in key:
            at ^= byte
            at ^= offset(units[at])
        units[at] = 1 << 31 | value
    return struct.pack(f"<{len(units) + 1}I", 4 * len(units), *units) + replacements


RULES = {
    "\u00e9": "\u00e9", "e\u0301": "\u00e9", "\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r\n": " ", "\r": " ", "\u0001": "",
    "\u200b": " ", "\ufb01": "fi", "\ufdfa": "abc def", "\u00bd": "1/2", "\uff21": "A", "\u0041\u030a": "\u00c5", "\u0600": "", "\u2460": "1",
    "\u4e2d": "\u4e2d", "\U0001f600": ":)", "a\u0323": "\u1ea1", "a": "a",
}


def unigram(normalizer, pre_tokenizer, **options):
    pieces = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
    words = sorted({word for line in TRAINING for word in line.split()})
    rng = random.Random(7)
    parts = {"\u2581"} | {"\u2581" + word for word in words} | {c for word in words for c in word}
    parts |= {word[i:j] for word in words for i in range(len(word)) for j in range(i + 2, min(len(word), i + 4) + 1)}
    parts = sorted(parts)
    rng.shuffle(parts)
    pieces += [[part, round(-2 - 12 * rng.random(), 2)] for part in parts[:500]]
    pieces += [["zz", -200.0], ["qqqq", -200.0], ["a", -4.5]]
    if options.get("byte_fallback"):
        pieces += [[f"<0x{i:02X}>", -9.0] for i in range(256)]
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None,
            "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces, "byte_fallback": False, **options}}
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>",
                                                             special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)])
    return tokenizer


def precompiled():
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(RULES)).decode()}


def metaspace(scheme, split=True):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}


def xlm_roberta():
    replace = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    return unigram({"type": "Sequence", "normalizers": [precompiled(), replace]}, metaspace("always"))


def camembert():
    return unigram(precompiled(), {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace("always")]})


def albert():
    names = ("NFKD", "StripAccents", "Lowercase")
    quotes = [{"type": "Replace", "pattern": {"String": text}, "content": '"'} for text in ("``", "''")]
    return unigram({"type": "Sequence", "normalizers": [*quotes, *({"type": name} for name in names)]}, metaspace("always"))


def whole_text():
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    return unigram(strip, metaspace("never", False), byte_fallback=True)


def first_word():
    return unigram({"type": "NFC"}, {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace("first")]})


FAMILIES = {
    "xlm_roberta": xlm_roberta, "camembert": camembert, "albert": albert, "whole_text": whole_text, "first_word": first_word,
    "roberta": roberta, "modernbert": modernbert, "llama": llama, "prefix_space": prefix_space, "gemma": gemma, "clip": clip,
    "prefixed": prefixed, "removed": lambda: splits("removed", False), "next": lambda: splits("merged_with_next", False),
    "previous": lambda: splits("merged_with_previous", True), "contiguous": lambda: splits("contiguous", True),
}


CHARACTERS = ["xlm_roberta", "albert", "roberta", "llama", "gemma", "clip", "prefixed", "removed", "modernbert"]


def with_string_merges(text):
    """The form of older files: "a b" for ["a", "b"]."""
    file = json.loads(text)
    file["model"]["merges"] = [" ".join(pair) for pair in file["model"]["merges"]]
    return json.dumps(file)


def hash_characters(tokenizer):
    value = 0
    for first in range(0, 0x110000, make_corpus.BLOCK):
        characters = [chr(c) for c in range(first, first + make_corpus.BLOCK) if not 0xD800 <= c < 0xE000]
        for encoding in tokenizer.encode_batch(["a" + c + " " + c + "b" for c in characters]):
            value = zlib.crc32((" ".join(map(str, encoding.ids)) + "\n").encode(), value)
    return value


def pairs(tokenizer):
    """[first text, second text, most tokens, ids, segments]: both texts short and long, and every limit around them."""
    rng = random.Random(11)
    some = [text for text in texts() if 0 < len(text) < 80][::7] + [""]
    found = []
    for _ in range(60):
        first, second = rng.choice(some), rng.choice(some)
        full = len(tokenizer.encode(first, second))
        limit = rng.choice([full, max(full - 1, 8), max(full - 2, 8), max(full * 2 // 3, 8), max(full // 3, 8), 8, 9])
        tokenizer.enable_truncation(limit, strategy="longest_first")
        encoding = tokenizer.encode(first, second)
        found.append([first, second, limit, encoding.ids, encoding.type_ids, make_corpus.offsets_checksum(encoding)])
        tokenizer.no_truncation()
    return found


def write(path, value):
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="ascii")


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "families"
    ids, offsets, hashes, pairs_of = {}, {}, {}, {}
    for name, make in FAMILIES.items():
        file = make().to_str()
        write(out / f"{name}.json", json.loads(with_string_merges(file) if name == "roberta" else file))
        tokenizer = Tokenizer.from_file(str(out / f"{name}.json"))
        encodings = [tokenizer.encode(text) for text in texts()]
        ids[name] = [encoding.ids for encoding in encodings]
        offsets[name] = [make_corpus.offsets_checksum(encoding) for encoding in encodings]
        pairs_of[name] = pairs(tokenizer)
        if name in CHARACTERS:
            hashes[name] = hash_characters(tokenizer)
    write(out / "texts.json", texts())
    write(out / "ids.json", ids)
    write(out / "offsets.json", offsets)
    write(out / "pairs.json", pairs_of)
    write(out / "characters.json", hashes)


if __name__ == "__main__":
    main()
