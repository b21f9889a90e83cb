#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tiny inference-free SPLADE models, with random weights, and their sparse vectors. A second run gives other
vocabularies: the library trains by chance.

    make_golden.py [NAME ...]      needs: pip install torch transformers sentence-transformers tokenizers (made with 6.2)

    routed       as sentence-transformers 6 saves it: the encoder, the pooling and the queries' weights in folders
    in_root      as OpenSearch's models are: the encoder beside router_config.json
    idf          as their first versions were: the encoder and idf.json, without modules.json
    weights_txt  the same with query_token_weights.txt

expected.json has `query` and `document`: for each text the [id, weight] pairs of its sparse vector, of the first two
as sentence-transformers makes them, of the others by the formulas of OpenSearch's model cards."""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from sentence_transformers import SparseEncoder
from sentence_transformers.sparse_encoder.modules import Router, SparseStaticEmbedding, SpladePooling, Transformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
LIMIT = 40
LINES = ["the quick brown fox jumps over the lazy dog", "how tall is the tower? it has 330 metres.",
         "caf\u00e9 na\u00efve r\u00e9sum\u00e9", "what a film! never again; prices fell, and it rains"] * 3
TEXTS = ["the quick brown fox", "how tall is the tower? the tower has 330 metres", "never [SEP] again", "", "\u4e16 again \u4e16",
         "caf\u00e9 again " * 30]
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
         "max_position_embeddings": LIMIT}
STATIC = "query_0_SparseStaticEmbedding"
# Of the documents.
MODELS = {"routed": "relu", "in_root": "log1p_relu", "idf": "relu", "weights_txt": "relu"}


def make_tokenizer():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(LINES, trainers.WordPieceTrainer(
        vocab_size=96, special_tokens=list(SPECIAL.values()), show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LIMIT, **SPECIAL)


def make_encoder(folder, tokenizer):
    config = transformers.BertConfig(vocab_size=len(tokenizer), **SIZES)
    model = transformers.BertForMaskedLM(config).eval()
    for parameter in model.parameters():  # far from the small numbers of an initialization
        torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else torch.nn.init.normal_(parameter, 0.5, 0.4)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def make_weights(size):
    """Of the queries' tokens: some have none, one is below 0."""
    weights = torch.rand(size) * 9
    weights[:5] = 0
    weights[::7] = 0
    weights[68] = -1.5
    return weights


def put_encoder_in_root(folder):
    """As arthurbresnu's changes made OpenSearch's models: the id of the encoder is empty."""
    path = folder / "router_config.json"
    router = json.loads(path.read_text())
    encoder = next(name for name in router["types"] if name.startswith("document_0"))
    router["types"] = {"" if name == encoder else name: kind for name, kind in router["types"].items()}
    router["types"][""] = "sentence_transformers.sparse_encoder.models.MLMTransformer"
    router["structure"]["document"][0] = ""
    path.write_text(json.dumps(router, indent=4))
    for file in (folder / encoder).iterdir():
        file.rename(folder / file.name)
    (folder / encoder).rmdir()


def pairs(vector):
    return [[int(i), float(f"{vector[i]:.8g}")] for i in vector.nonzero()[:, 0].tolist()]


def by_sentence_transformers(folder):
    model = SparseEncoder(str(folder), device="cpu")
    return {"query": [pairs(row) for row in model.encode_query(TEXTS, convert_to_sparse_tensor=False)],
            "document": [pairs(row) for row in model.encode_document(TEXTS, convert_to_sparse_tensor=False)]}


def by_formulas(tokenizer, encoder, weights):
    queries, documents = [], []
    for text in TEXTS:
        present = torch.zeros(len(tokenizer))
        present[tokenizer(text, add_special_tokens=False, truncation=True)["input_ids"]] = 1
        queries.append(pairs(present * weights))
        inputs = tokenizer(text, truncation=True, return_tensors="pt")
        with torch.no_grad():
            logits = encoder(**inputs).logits[0]
        documents.append(pairs(torch.log1p(torch.relu(logits.max(0).values))))
    return {"query": queries, "document": documents}


def write_weights(folder, name, tokenizer, weights):
    by_token = {token: float(weights[index]) for token, index in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
                if weights[index] != 0}
    if name == "idf":
        (folder / "idf.json").write_text(json.dumps(by_token, indent=1) + "\n")
    else:
        (folder / "query_token_weights.txt").write_text("".join(f"{token}\t{weight!r}\n" for token, weight in by_token.items()))


def make(name):
    torch.manual_seed(sum(name.encode()))
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    tokenizer = make_tokenizer()
    weights = make_weights(len(tokenizer))
    if name in ("idf", "weights_txt"):
        encoder = make_encoder(folder, tokenizer)
        write_weights(folder, name, tokenizer, weights)
        expected = by_formulas(tokenizer, encoder, weights)
    else:
        with tempfile.TemporaryDirectory() as saved:
            make_encoder(saved, tokenizer)
            encoder = Transformer(saved, transformer_task="fill-mask")
        static = SparseStaticEmbedding(tokenizer=encoder.tokenizer, weight=weights, frozen=True)
        pooling = SpladePooling(pooling_strategy="max", activation_function=MODELS[name])
        router = Router.for_query_document(query_modules=[static], document_modules=[encoder, pooling])
        SparseEncoder(modules=[router], device="cpu").save_pretrained(str(folder), create_model_card=False)
        if name == "in_root":
            put_encoder_in_root(folder)
        expected = by_sentence_transformers(folder)
    expected["texts"] = TEXTS
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or MODELS:
        make(chosen)
