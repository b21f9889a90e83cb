#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny ColBERT models with random weights, as PyLate and Stanford's code save them, and the vectors of a few texts
as queries and as documents. A second run gives other vocabularies: the library trains by chance. make_scores.py and
make_saved_again.py must run after it.

    make_golden.py      needs: pip install torch transformers tokenizers safetensors (made with transformers 5.23)

The encoders are transformers'; what PyLate does around them is written out here: the marker behind the first token, mask
tokens up to the length of a query, which the attention mask hides or not, the linear layer, rows of length 1, and no
vectors for the punctuation of documents. expected.json has the texts, and for each as a query and as a document its ids,
the tokens that have a vector, and the vectors."""

import json
import pathlib
import shutil
import string

import safetensors.torch
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
MODERNBERT = HERE.parent / "tokenizer" / "families" / "modernbert.json"
DIMS = 12
LIMIT = 40
LINES = ["the quick brown fox jumps over the lazy dog", "how tall is the tower? it has 330 metres.",
         "what a film! never again; prices fell, and it rains (again) - they said: \"no\""] * 3
TEXTS = ["how tall is the tower?", "it has 330 metres, they said: \"no\".", "", "the quick brown fox, again and again; " * 5]
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
         "max_position_embeddings": LIMIT}


def wordpiece(*markers, special):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    first = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(markers if special else ())]
    tokenizer.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=130, special_tokens=first, show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    if not special:
        tokenizer.add_tokens([AddedToken(marker, normalized=False) for marker in markers])
    return tokenizer


def modernbert(*markers):
    tokenizer = Tokenizer.from_file(str(MODERNBERT))
    tokenizer.add_tokens([AddedToken(marker, normalized=False) for marker in markers])
    return tokenizer


class Model:
    """Of one folder: the encoder, the linear layer, and what PyLate's options say."""

    def __init__(self, encoder, tokenizer, options):
        self.encoder, self.tokenizer, self.options = encoder.eval(), tokenizer, options
        self.linear = torch.nn.Linear(32, DIMS, bias=False)
        for parameter in [*encoder.parameters(), *self.linear.parameters()]:
            torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else torch.nn.init.normal_(parameter, 0.5, 0.4)

    def mark(self, text, side):
        """The ids of a text, cut to leave room for the marker, with the marker."""
        length, marker = self.options[f"{side}_length"], self.options[f"{side}_prefix"]
        self.tokenizer.enable_truncation(length - 1)
        ids = self.tokenizer.encode(text).ids
        self.tokenizer.no_truncation()
        return [ids[0], self.tokenizer.token_to_id(marker), *ids[1:]]

    @torch.no_grad()
    def vectors(self, ids, mask):
        states = self.encoder(input_ids=torch.tensor([ids]), attention_mask=torch.tensor([mask])).last_hidden_state[0]
        return torch.nn.functional.normalize(self.linear(states), dim=-1)

    def query(self, text):
        ids = self.mark(text, "query")
        filled = self.options["query_length"] - len(ids) if self.options["do_query_expansion"] else 0
        mask = [1] * len(ids) + [int(self.options["attend_to_expansion_tokens"])] * filled
        ids = ids + [self.tokenizer.token_to_id("[MASK]")] * filled
        return case(ids, range(len(ids)), self.vectors(ids, mask))

    def document(self, text):
        ids = self.mark(text, "document")
        skipped = {self.tokenizer.token_to_id(word) for word in self.options["skiplist_words"]}
        kept = [i for i, token in enumerate(ids) if token not in skipped]
        return case(ids, kept, self.vectors(ids, [1] * len(ids))[kept])


def case(ids, tokens, vectors):
    return {"ids": ids, "tokens": list(tokens), "vectors": [[float(f"{x:.8g}") for x in row] for row in vectors.tolist()]}


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def options(**changed):
    return {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 14, "document_length": 24,
            "attend_to_expansion_tokens": False, "skiplist_words": list(string.punctuation),
            "do_query_expansion": True} | changed


def save_pylate(folder, model):
    model.encoder.save_pretrained(folder)
    steps = [("", "sentence_transformers.models.Transformer"), ("1_Dense", "pylate.models.Dense.Dense")]
    write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": kind}
                                         for i, (path, kind) in enumerate(steps)])
    write_json(folder / "config_sentence_transformers.json",
               {"model_type": "ColBERT", "prompts": {"query": "", "document": ""}, "default_prompt_name": None,
                "similarity_fn_name": "MaxSim"} | model.options)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 23, "do_lower_case": False})
    write_json(folder / "1_Dense" / "config.json", {"in_features": 32, "out_features": DIMS, "bias": False,
                                                    "activation_function": "torch.nn.modules.linear.Identity"})
    safetensors.torch.save_file({"linear.weight": model.linear.weight.detach()}, folder / "1_Dense" / "model.safetensors")


def save_stanford(folder, model):
    model.encoder.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | {"architectures": ["HF_ColBERT"]})
    state = {f"bert.{name}": value for name, value in safetensors.torch.load_file(folder / "model.safetensors").items()}
    state["linear.weight"] = model.linear.weight.detach()
    safetensors.torch.save_file(state, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "artifact.metadata",
               {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_token": "[Q]", "doc_token": "[D]",
                "query_maxlen": model.options["query_length"], "doc_maxlen": model.options["document_length"],
                "attend_to_mask_tokens": model.options["attend_to_expansion_tokens"], "mask_punctuation": True,
                "dim": DIMS, "similarity": "cosine"})


def make_bert(tokenizer, chosen):
    config = transformers.BertConfig(vocab_size=tokenizer.get_vocab_size(), **SMALL)
    return Model(transformers.BertModel(config, add_pooling_layer=False), tokenizer, chosen)


def make_modernbert(tokenizer, chosen):
    special = dict(pad_token_id=3, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
    config = transformers.ModernBertConfig(vocab_size=tokenizer.get_vocab_size(), local_attention=16, **SMALL, **special)
    return Model(transformers.ModernBertModel(config), tokenizer, chosen)


MAKERS = {
    "pylate_bert": (save_pylate, lambda: make_bert(wordpiece("[Q] ", "[D] ", special=False), options())),
    "pylate_modernbert": (save_pylate, lambda: make_modernbert(modernbert("[Q] ", "[D] "), options(do_query_expansion=False))),
    "stanford_bert": (save_stanford, lambda: make_bert(
        wordpiece("[unused0]", "[unused1]", special=True),
        options(query_prefix="[unused0]", document_prefix="[unused1]", attend_to_expansion_tokens=True))),
}


def main():
    torch.set_num_threads(1)
    for name, (save, make) in MAKERS.items():
        torch.manual_seed(sum(name.encode()))
        model, folder = make(), HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        save(folder, model)
        model.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        (folder / "expected.json").write_text(json.dumps(
            {"texts": TEXTS, "query": [model.query(text) for text in TEXTS],
             "document": [model.document(text) for text in TEXTS]}) + "\n")
        for path in folder.rglob("*.safetensors"):
            path.chmod(0o644)


if __name__ == "__main__":
    main()
