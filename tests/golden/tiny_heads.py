# SPDX-License-Identifier: Apache-2.0
"""A small vocabulary and models with random weights, for the scripts of tiny models with heads. The same on every run."""

import pathlib
import shutil

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

TOKENIZERS = pathlib.Path(__file__).resolve().parent / "tokenizer" / "families"
LIMIT = 40
LINES = ["the quick brown fox jumps over the lazy dog", "how tall is the tower? it has 330 metres.",
         "caf\u00e9 na\u00efve r\u00e9sum\u00e9", "what a film! never again; prices fell, and it rains"]
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT = SMALL | {"max_position_embeddings": LIMIT}
DISTILBERT = {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 2, "max_position_embeddings": LIMIT}
ROBERTA = SMALL | {"max_position_embeddings": LIMIT + 2, "type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0,
                   "eos_token_id": 2}
ESM = SMALL | {"max_position_embeddings": LIMIT, "layer_norm_eps": 1e-5, "mask_token_id": 32, "pad_token_id": 1,
               "position_embedding_type": "rotary", "token_dropout": True}
DECODER = BERT | {"num_key_value_heads": 1, "head_dim": 12}
MODERNBERT = BERT | {"pad_token_id": 3, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
                     "local_attention": 16}


def vocabulary(lines, special):
    """Special tokens, each character alone and inside of a word, and two words of three. No trainer: the library's breaks
    ties by chance."""
    normalizer = normalizers.BertNormalizer()
    words = sorted({word for line in lines for word, _ in
                    pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normalizer.normalize_str(line))})
    characters = sorted(set("".join(words)))
    tokens = [*special, *characters, *(f"##{character}" for character in characters),
              *(word for i, word in enumerate(words) if i % 3)]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def wordpiece(*more_tokens):
    """Makes a tokenizer that has `more_tokens` beside BERT's special ones."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *more_tokens]
    tokenizer = Tokenizer(models.WordPiece(vocabulary(LINES, special), unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def family(name):
    return lambda: Tokenizer.from_file(str(TOKENIZERS / f"{name}.json"))


def make_model(folder, model_class, config_class, options, make_tokenizer):
    """Writes config.json, model.safetensors and tokenizer.json into a new folder: (model, tokenizer)."""
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(sum(folder.name.encode()))
    tokenizer = make_tokenizer()
    config = getattr(transformers, config_class)(vocab_size=tokenizer.get_vocab_size(), **options)
    model = getattr(transformers, model_class)(config).eval()
    for parameter in model.parameters():  # far from the small numbers of an initialization
        torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else torch.nn.init.normal_(parameter, 0.5, 0.4)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    if config.model_type in ("albert", "xlm-roberta", "jina_embeddings_v3"):  # whose class does not take all of that file
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}\n')
    return model, tokenizer
