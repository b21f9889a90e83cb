#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny folders of sentence-transformers with random weights and every module and pooling, and what
sentence-transformers answers for texts. The same on every run.

    make_golden.py [NAME ...]      needs: pip install torch transformers sentence-transformers (made with 6.2)

Each folder is as sentence-transformers saved it, with the type names and the fields of old versions where the table says
so, and has expected.json: for each prompt, the embeddings of all texts."""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling, Transformer

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "encoder"))
import tiny_tokenizers  # noqa: E402

HIDDEN, LIMIT = 24, 40
EVERY_POOLING = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
FLAGS = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
         "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}
PROMPTS = {"query": "the cat: ", "document": "", "long": "a cat and one cat " * 2}


def dense(inputs, outputs, activation, **options):
    return Dense(inputs, outputs, activation_function=activation, **options)


# name: (poolings, modules behind them, include_prompt, default prompt, saved as old versions did)
MODELS = {
    "every_pooling": (EVERY_POOLING, lambda: [Normalize()], True, None, False),
    "old_flags": (["cls", "mean"], lambda: [dense(2 * HIDDEN, 20, torch.nn.Tanh()), LayerNorm(20)], True, None, True),
    "many_modules": (["mean"], lambda: [
        dense(HIDDEN, 32, torch.nn.GELU(), bias=False, use_residual=True), Normalize(),
        dense(32, 32, torch.nn.Identity(), use_residual=True), LayerNorm(32), dense(32, 16, torch.nn.Sigmoid()),
        Normalize()], True, None, False),
    "prompts": (["mean"], lambda: [Normalize()], True, "query", False),
    "prompt_left_out": (EVERY_POOLING, lambda: [], False, None, False),
}


def encoder(folder):
    """A random BERT and its tokenizer, as transformers saves them."""
    config = transformers.BertConfig(
        vocab_size=tiny_tokenizers.SIZE, hidden_size=HIDDEN, intermediate_size=40, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=LIMIT)
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    for parameter in model.parameters():  # far from the small numbers of an initialization
        torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else torch.nn.init.normal_(parameter, 0.5, 0.4)
    model.save_pretrained(folder)
    tokenizer = tiny_tokenizers.word_piece(tiny_tokenizers.BERT, "[UNK]", "[CLS]", "[SEP]")
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LIMIT, **names).save_pretrained(folder)


def write(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def make_old(folder):
    """The type names and the pooling's fields that versions before 5 wrote."""
    steps = json.loads((folder / "modules.json").read_text())
    for step in steps:
        step["type"] = "sentence_transformers.models." + step["type"].split(".")[-1]
    write(folder / "modules.json", steps)
    pooling = folder / "1_Pooling" / "config.json"
    modes = json.loads(pooling.read_text())["pooling_mode"]
    write(pooling, {"word_embedding_dimension": HIDDEN} | {f"pooling_mode_{flag}": mode in modes for mode, flag in FLAGS.items()})


def make(name):
    poolings, make_modules, include_prompt, default_prompt, old = MODELS[name]
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(sum(name.encode()))
    with tempfile.TemporaryDirectory() as saved:
        encoder(saved)
        pooling = Pooling(HIDDEN, poolings if len(poolings) > 1 else poolings[0], include_prompt=include_prompt)
        modules = make_modules()
        for module in modules:
            for parameter in module.parameters():
                torch.nn.init.normal_(parameter, std=0.3)
        prompts = PROMPTS if "prompt" in name else None
        model = SentenceTransformer(modules=[Transformer(saved), pooling, *modules], prompts=prompts,
                                    default_prompt_name=default_prompt, device="cpu").eval()
    model.save(str(folder), create_model_card=False)
    if old:
        make_old(folder)
        model = SentenceTransformer(str(folder), device="cpu").eval()
    for file in ("README.md", "special_tokens_map.json"):
        (folder / file).unlink(missing_ok=True)
    texts = list(tiny_tokenizers.TEXTS)
    expected = [{"prompt_name": prompt, "texts": texts,
                 "embeddings": [model.encode(text, prompt_name=prompt or None, prompt="" if prompt == "" else None).tolist()
                                for text in texts]}
                for prompt in ([None, "", *PROMPTS] if prompts else [None])]
    write(folder / "expected.json", expected)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or MODELS:
        make(chosen)
