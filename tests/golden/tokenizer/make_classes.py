#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what AutoTokenizer of transformers makes of folders whose files name a class that does not take all of
tokenizer.json. The same on every run.

    make_classes.py [OUT_FILE]      needs: pip install transformers (made with 5.23)

classes.json  {"texts": [...], "cases": [{"name", "file": a tokenizer.json under tests/golden, "changes": {JSON
              pointer: what it has there instead}, "folder": {NAME: the folder's other files}, "ids": [of each text],
              "pair": the ids of the first two texts as a pair}, ...]}
"""

import json
import pathlib
import sys
import tempfile

import transformers

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent
TEXTS = ["hello ", " low  newer ", "hello", "", "  hello world  ", "a b <mask> c", "low lower </s> x", "a\tb", "a\u0085b", "a\u2028b",
         "ABC \ufb01 \u2460", "\u00e9 e\u0301", "\u4e2d\u6587", "a\u2581b", "x<unk>y", "<s>a", "I'm 12345", "\u00a0a \n b", "<pad>",
         "a[MASK]b [SEP] [PAD]", "x<extra_id_0> a", "a<s>NOTUSED b", "cabs cold"]
XLM_ROBERTA = "tokenizer/families/xlm_roberta.json"
CAMEMBERT = "tokenizer/families/camembert.json"
T5 = "encoder/tiny_t5/tokenizer.json"
BERT = "tokens/bert_tokens/tokenizer.json"
ROBERTA = "tokenizer/families/roberta.json"
LLAMA = "tokenizer/families/llama.json"
QWEN3 = "encoder/tiny_qwen3/tokenizer.json"
MISTRAL = "encoder/tiny_mistral/tokenizer.json"
MODERNBERT = "encoder/tiny_modernbert/tokenizer.json"
DEBERTA = "encoder/tiny_deberta_v2/tokenizer.json"
ALBERT = "encoder/tiny_albert/tokenizer.json"


def read(path):
    return json.loads((GOLDEN / path).read_text(encoding="utf-8"))


def changed(value, changes):
    for pointer, new in changes.items():
        *path, last = [int(step) if step.isdigit() else step for step in pointer.split("/")[1:]]
        place = value
        for step in path:
            place = place[step]
        if isinstance(place, list) and last == len(place):
            place.append(new)
        else:
            place[last] = new
    return value


def named(tokenizer_class, **fields):
    return {"tokenizer_config.json": {"tokenizer_class": tokenizer_class, **fields}}


def cases():
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    replace = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}
    xlm = "XLMRobertaTokenizer"
    yield "xlm_roberta", XLM_ROBERTA, {}, named(xlm)
    yield "xlm_roberta by model_type", XLM_ROBERTA, {}, {"config.json": {"model_type": "xlm-roberta"}}
    yield "xlm_roberta in a BERT", XLM_ROBERTA, {}, {**named("XLMRobertaTokenizerFast"), "config.json": {"model_type": "bert"}}
    yield "xlm_roberta, newer file", XLM_ROBERTA, {"/normalizer/normalizers/1": strip, "/normalizer/normalizers/2": replace}, named(xlm)
    yield "xlm_roberta, lower case", XLM_ROBERTA, {"/normalizer/normalizers/1": {"type": "Lowercase"}}, named(xlm)
    yield "xlm_roberta, no rules", XLM_ROBERTA, {"/normalizer": {"type": "NFKC"}}, named(xlm)
    yield "xlm_roberta, no prefix", XLM_ROBERTA, {}, named(xlm, add_prefix_space=False)
    yield "xlm_roberta, other ends", XLM_ROBERTA, {}, named(xlm, bos_token="<unk>", eos_token="<pad>")
    yield "xlm_roberta, other ends in the older file", XLM_ROBERTA, {}, {
        **named(xlm), "special_tokens_map.json": {"eos_token": "<pad>"}}
    yield "xlm_roberta, no ends", XLM_ROBERTA, {"/post_processor": None}, named(xlm, sep_token="<pad>")
    yield "camembert", CAMEMBERT, {}, named("CamembertTokenizer")
    yield "camembert, other token of what is unknown", CAMEMBERT, {"/model/unk_id": 1}, named("CamembertTokenizer", unk_token="<pad>")
    yield "t5", T5, {}, named("T5Tokenizer", extra_ids=2, add_prefix_space=False)
    yield "t5, no added tokens", T5, {"/added_tokens": []}, named("T5Tokenizer")
    yield "camembert, no added tokens", CAMEMBERT, {"/added_tokens": [], "/model/vocab/20/0": "<s>NOTUSED"}, named("CamembertTokenizer")
    none, bert, whole = {"/added_tokens": []}, "BertTokenizer", "PreTrainedTokenizerFast"
    added = {"content": "b", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    yield "bert, no added tokens", BERT, none, named(bert)
    yield "bert, split", BERT, {}, named(bert, split_special_tokens=True)
    yield "bert, a role", BERT, {}, named(bert, pad_token="b")
    yield "bert, a role of its own", BERT, {}, named(bert, image_token="b")
    yield "bert, more", BERT, {}, named(bert, additional_special_tokens=["b"])
    yield "bert, more by name", BERT, {}, named(bert, extra_special_tokens={"x": "b"})
    yield "bert, added", BERT, {}, named(bert, added_tokens_decoder={"13": added})
    yield "bert, older files", BERT, {}, {**named(bert), "special_tokens_map.json": {"additional_special_tokens": ["b"]},
                                          "added_tokens.json": {"l": 5}}
    yield "bert, older files that do not count", BERT, {}, {**named(bert, additional_special_tokens=[], added_tokens_decoder={"13": added}),
                                                            "special_tokens_map.json": {"additional_special_tokens": ["o"]},
                                                            "added_tokens.json": {"l": 5}}
    yield "no class, no added tokens", BERT, none, named(whole, mask_token="[MASK]", cls_token="")
    yield "no class, split", MODERNBERT, {}, named(whole, split_special_tokens=True, bos_token="a")
    gpt2, qwen2, cut = "GPT2Tokenizer", "Qwen2Tokenizer", {"type": "Digits", "individual_digits": True}
    yield "gpt2, prefix", ROBERTA, {"/post_processor": None}, named(gpt2, add_prefix_space=True)
    yield "gpt2, no prefix", ROBERTA, {"/pre_tokenizer/add_prefix_space": True, "/normalizer": {"type": "Lowercase"}}, named("GPT2TokenizerFast")
    yield "gpt2, other words", ROBERTA, {"/pre_tokenizer": cut, "/model/unk_token": "<unk>", "/added_tokens": []}, named(gpt2, eos_token="<pad>")
    yield "qwen2", QWEN3, {}, named(qwen2, add_prefix_space=False, bos_token=None, eos_token="<pad>")
    yield "qwen2 by model_type", QWEN3, {"/normalizer": None}, {"config.json": {"model_type": "qwen3"}}
    yield "qwen2, llama's words", LLAMA, {"/model/ignore_merges": False}, named(qwen2)
    yield "qwen2, prefix", ROBERTA, {"/normalizer": {"type": "Lowercase"}, "/model/byte_fallback": True}, named(qwen2, add_prefix_space=True)
    yield "qwen2 whatever the folder says", MODERNBERT, {}, {**named(whole), "config.json": {"model_type": "qwen2"}}
    llama, known = "LlamaTokenizer", {"/model/unk_token": None}
    yield "llama", MISTRAL, known, named(llama)
    yield "llama, older", MISTRAL, known, named("LlamaTokenizerFast", legacy=True, add_prefix_space=None)
    yield "llama, no prefix", MISTRAL, known | {"/post_processor": None}, named(llama, add_prefix_space=False)
    yield "llama, flags that do not count", MISTRAL, known, named(llama, add_bos_token=False, add_eos_token=True, legacy=None)
    yield "llama, no added tokens", MISTRAL, known | {"/added_tokens": []}, named(llama, eos_token="a")
    yield "llama in a llama", MISTRAL, known, {**named(llama), "config.json": {"model_type": "llama"}}
    yield "llama in a mistral", MISTRAL, {}, {**named(llama, legacy=False), "config.json": {"model_type": "mistral"}}
    yield "no class in a llama", MISTRAL, {}, {"config.json": {"model_type": "llama"}}
    yield "llama of bytes", LLAMA, {}, {**named(llama), "config.json": {"model_type": "llama"}}
    albert, lower = "AlbertTokenizer", {"/normalizer": {"type": "Lowercase"}}
    yield "albert", ALBERT, lower, named(albert)
    yield "albert by model_type", ALBERT, {"/normalizer": None, "/pre_tokenizer": None}, {"config.json": {"model_type": "albert"}}
    yield "albert, cased with accents", ALBERT, {}, named(albert, do_lower_case=False, keep_accents=True)
    yield "albert, no template", ALBERT, {"/post_processor": None}, named(albert, cls_token="[SEP]")
    yield "albert, rules", ALBERT, {"/normalizer": read(XLM_ROBERTA)["normalizer"]}, named(albert, add_prefix_space=False)
    yield "deberta_v2", DEBERTA, {"/post_processor": None}, named("DebertaV2Tokenizer", cls_token="[SEP]")


def main():
    made = []
    for name, file, changes, folder in cases():
        with tempfile.TemporaryDirectory() as directory:
            contents = changed(read(file), changes)
            for place, value in {"config.json": {}, **folder, "tokenizer.json": contents}.items():
                pathlib.Path(directory, place).write_text(json.dumps(value), encoding="utf-8")
            tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
        made.append({"name": name, "file": file, "changes": changes, "folder": folder,
                     "ids": [tokenizer(text)["input_ids"] for text in TEXTS], "pair": tokenizer(*TEXTS[:2])["input_ids"]})
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "classes.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in made)
    out.write_text(f'{{"texts":{json.dumps(TEXTS)},\n"cases":[\n{lines}]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
