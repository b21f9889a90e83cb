# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of 61 tokens for the tiny checkpoints: of each kind that the families use, with their special tokens."""

import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from esm_tokenizer import EsmTokenizer  # noqa: E402, F401

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIZE = 61
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

TEXTS = (
    "the cat sat on the mat",
    "A cat,  singing in the rain...",
    "\u00d6l und K\u00e4se: 12 \u20ac",
    "",
    "<mask> [MASK] </s>",
    "the singing cat ate one cat and then another " * 5,
)


def finish(tokenizer, specials, first, last):
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in specials])
    ids = [(token, tokenizer.token_to_id(token)) for token in (first, last) if token]
    tokenizer.post_processor = processors.TemplateProcessing(f"{first} $A {last}".strip(), special_tokens=ids)
    assert tokenizer.get_vocab_size() == SIZE
    return tokenizer


def word_piece(specials, unknown, first, last):
    words = [*specials, *LETTERS, *("##" + letter for letter in LETTERS), "the", "cat", "##ing", "."]
    tokenizer = Tokenizer(models.WordPiece({word: index for index, word in enumerate(words)}, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return finish(tokenizer, specials, first, last)


def byte_bpe(specials, first, last):
    merges = ["\u0120 t", "h e", "\u0120t he", "i n", "in g", "\u0120 a", "a t", "c at", "\u0120 cat", "\u0120a n",
              "e r", "o n", "\u0120 s", "on e", "\u0120 in", "\u0120 on", "r a", "\u0120an d", "s ing", "m at", "at e",
              "o t", "ot he", "othe r", "\u0120 m", "u n", "un d"]
    tokens = [*specials, "\u0120", *LETTERS, ".", ","] + [merge.replace(" ", "") for merge in merges]
    vocab = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.BPE(vocab, [tuple(merge.split()) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return finish(tokenizer, specials, first, last)


def scored_pieces(specials):
    pieces = ["\u2581the", "\u2581cat", "\u2581s", "ing", "\u2581", "at", "\u2581on", "er", "\u2581a", "in", "\u2581m",
              "on", "and", "\u2581then", "other", "an", "th", "\u2581in", "ate", "ra", "s", "sa", "un", "ot", ".", ",",
              "ne", "he", "e", "t", "cat", "\u2581one", "mat"]
    pieces = list(dict.fromkeys([*pieces, *LETTERS]))[:SIZE - len(specials)]
    return [(token, 0.0) for token in specials] + [(piece, -2.0 - index / 7) for index, piece in enumerate(pieces)]


def unigram():
    tokenizer = Tokenizer(models.Unigram(scored_pieces(ROBERTA), unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return finish(tokenizer, ROBERTA, "<s>", "</s>")


def bert_word_piece():
    return word_piece(BERT, "[UNK]", "[CLS]", "[SEP]")


def mpnet_word_piece():
    return word_piece(ROBERTA, "<unk>", "<s>", "</s>")


def roberta_bpe():
    return byte_bpe(ROBERTA, "<s>", "</s>")


def modernbert_bpe():
    return byte_bpe(BERT, "[CLS]", "[SEP]")


def qwen_bpe():
    return byte_bpe(("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|box|>", "<|quad|>"), "", "<|endoftext|>")


def eurobert_bpe():
    return byte_bpe(("<|begin_of_text|>", "<|end_of_text|>", "<|mask|>", "<|pad|>", "<|parallel_sep|>"),
                    "<|begin_of_text|>", "<|end_of_text|>")


def deberta_unigram():
    specials = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
    tokenizer = Tokenizer(models.Unigram(scored_pieces(specials), unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC(),
        normalizers.Strip(left=False, right=True)])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace()])
    return finish(tokenizer, specials, "[CLS]", "[SEP]")


def albert_unigram():
    specials = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    tokenizer = Tokenizer(models.Unigram(scored_pieces(specials), unk_id=1))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return finish(tokenizer, specials, "[CLS]", "[SEP]")


def t5_unigram():
    specials = ("<pad>", "</s>", "<unk>", "<extra_id_1>", "<extra_id_0>")
    tokenizer = Tokenizer(models.Unigram(scored_pieces(specials), unk_id=2))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return finish(tokenizer, specials, "", "</s>")


def spelled_bpe(specials):
    """With the bytes of some letters: others are unknown."""
    merges = ["\u2581 t", "h e", "\u2581t he", "i n", "in g", "\u2581 a", "a t", "c at", "\u2581 cat", "\u2581a n",
              "e r", "o n", "\u2581 s", "on e", "\u2581 in", "\u2581 on", "m at", "a r", "e n", "o t", "i t"]
    spelled = [f"<0x{byte:02X}>" for byte in "\u00d6\u00e4\u20ac".encode()]
    tokens = [*specials, *spelled, "\u2581", *LETTERS, ".", ","] + [merge.replace(" ", "") for merge in merges]
    vocab = {token: index for index, token in enumerate(list(dict.fromkeys(tokens))[:SIZE])}
    pairs = [tuple(merge.split()) for merge in merges if merge.replace(" ", "") in vocab]
    return Tokenizer(models.BPE(vocab, pairs, unk_token="<unk>", fuse_unk=True, byte_fallback=True))


def mistral_bpe():
    """As the files of Llama 2 and Mistral are."""
    specials = ("<unk>", "<s>", "</s>", "<mask>", "<pad>")
    tokenizer = spelled_bpe(specials)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    return finish(tokenizer, specials, "<s>", "</s>")


def gemma_bpe():
    specials = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
    tokenizer = spelled_bpe(specials)
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    return finish(tokenizer, specials, "<bos>", "<eos>")
