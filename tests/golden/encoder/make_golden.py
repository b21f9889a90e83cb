# SPDX-License-Identifier: Apache-2.0
"""Writes what the encoder's C++ tests compare with, as ../README.md describes.

Needs torch, transformers, sentence-transformers and safetensors. deploy/fetch-model.sh fetches the real models. Run it
from anywhere, for all or for some:

    python tests/golden/encoder/make_golden.py [NAME...]
"""

import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import transformers

import tiny_models
import tiny_tokenizers
from jina_module import jina_bert, jina_qk
from neobert_module import NeoBert, neobert_config
from nomic_module import nomic_moe, nomic_moe_config
from real_texts import SHORT_TEXTS, TEXTS

HERE = pathlib.Path(__file__).resolve().parent
FETCH_MODEL = HERE.parents[2] / "deploy" / "fetch-model.sh"
SEED = 20240917
LENGTHS = (1, 2, 7, 16, 17, 33, 40)
INSIDE_LENGTHS = (1, 7, 17)

TINY = {
    # head_dim 12 and odd widths: no kernel's vector length divides them.
    "tiny_gelu": dict(
        layers=3, hidden=48, heads=4, ffn=112, vocab=97, segments=2, act="gelu",
        dtype=torch.float32, prefix="", old_names=False),
    "tiny_gelu_tanh": dict(
        layers=1, hidden=64, heads=2, ffn=72, vocab=53, segments=2, act="gelu_new",
        dtype=torch.float32, prefix="", old_names=False),
    # Rounded weights, and the tensor names of BERT's first conversions.
    "tiny_relu_bf16": dict(
        layers=2, hidden=24, heads=3, ffn=40, vocab=31, segments=1, act="relu",
        dtype=torch.bfloat16, prefix="bert.", old_names=True),
    # BERT's relatives.
    "tiny_roberta": dict(
        family="roberta", layers=2, hidden=32, heads=2, ffn=56, vocab=61, segments=1, act="gelu",
        dtype=torch.float32, prefix="roberta.", old_names=False, tokenizer="roberta_bpe"),
    "tiny_xlm_roberta": dict(
        family="xlm_roberta", layers=1, hidden=32, heads=2, ffn=40, vocab=61, segments=1, act="gelu",
        dtype=torch.float32, prefix="", old_names=False, tokenizer="unigram"),
    "tiny_distilbert": dict(
        family="distilbert", layers=2, hidden=32, heads=4, ffn=48, vocab=61, segments=0, act="gelu",
        dtype=torch.float32, prefix="distilbert.", old_names=False, tokenizer="bert_word_piece"),
    "tiny_electra": dict(
        family="electra", layers=2, hidden=32, heads=2, ffn=48, vocab=61, segments=2, act="gelu",
        dtype=torch.float32, prefix="electra.", old_names=False, tokenizer="bert_word_piece"),
    "tiny_electra_small": dict(
        family="electra", layers=2, hidden=32, heads=2, ffn=48, vocab=61, segments=2, act="gelu", embedding=24,
        dtype=torch.float32, prefix="electra.", old_names=False, tokenizer="bert_word_piece"),
    # Two groups of two layers each.
    "tiny_albert": dict(
        family="albert", layers=4, hidden=32, heads=2, ffn=48, vocab=61, segments=2, act="gelu_new",
        dtype=torch.float32, prefix="albert.", old_names=False, tokenizer="albert_unigram"),
    "tiny_mpnet": dict(
        family="mpnet", layers=2, hidden=32, heads=4, ffn=56, vocab=61, segments=0, act="gelu",
        dtype=torch.float32, prefix="mpnet.", old_names=False, tokenizer="mpnet_word_piece"),
    # Heads of 12; windows of 4 to either side. The states grow from layer to layer, and PyTorch's error with them:
    # smaller weights keep it below 1e-5.
    "tiny_modernbert": dict(
        family="modernbert", layers=4, hidden=36, heads=3, ffn=40, vocab=61, segments=0, act="gelu",
        dtype=torch.float32, prefix="model.", old_names=False, spread=1.0, tokenizer="modernbert_bpe"),
    "tiny_nomic_bert": dict(
        family="nomic_bert", layers=2, hidden=32, heads=2, ffn=44, vocab=61, segments=2, act="silu",
        dtype=torch.float32, prefix="", old_names=False, tokenizer="bert_word_piece"),
    "tiny_nomic_moe": dict(
        family="nomic_moe", layers=2, hidden=32, heads=2, ffn=40, vocab=61, segments=1, act="gelu", experts=4, top_k=2,
        dtype=torch.float32, prefix="", old_names=False, tokenizer="unigram"),
    "tiny_gte": dict(
        family="gte", layers=2, hidden=32, heads=4, ffn=44, vocab=61, segments=2, act="gelu",
        dtype=torch.float32, prefix="new.", old_names=False, tokenizer="unigram"),
    "tiny_jina_v3": dict(
        family="jina_v3", layers=1, hidden=32, heads=2, ffn=40, vocab=61, segments=1, act="gelu",
        dtype=torch.float32, prefix="", old_names=False, tokenizer="unigram"),
    "tiny_deberta_v2": dict(
        family="deberta_v2", layers=2, hidden=36, heads=3, ffn=40, vocab=61, segments=0, act="gelu",
        dtype=torch.float32, prefix="deberta.", old_names=False, tokenizer="deberta_unigram"),
    # Norms that multiply by 1 and more.
    "tiny_gemma3": dict(
        family="gemma3", layers=3, hidden=32, heads=4, ffn=40, vocab=61, segments=0, act="gelu_pytorch_tanh",
        dtype=torch.float32, prefix="", old_names=False, spread=1.0, gamma=0.0, tokenizer="gemma_bpe"),
    # Scores are not scaled: smaller weights.
    "tiny_t5": dict(
        family="t5", layers=2, hidden=32, heads=4, ffn=40, vocab=61, segments=0, act="relu",
        dtype=torch.float32, prefix="", old_names=False, spread=0.7, tokenizer="t5_unigram"),
    "tiny_t5_gated": dict(
        family="t5", layers=1, hidden=32, heads=4, ffn=40, vocab=61, segments=0, act="gated-gelu",
        dtype=torch.float32, prefix="", old_names=False, spread=0.7, tokenizer="t5_unigram"),
    "tiny_eurobert": dict(
        family="eurobert", layers=2, hidden=32, heads=4, ffn=40, vocab=61, segments=0, act="silu",
        dtype=torch.float32, prefix="model.", old_names=False, spread=1.0, tokenizer="eurobert_bpe"),
    # Heads that are no power of two.
    "tiny_jina_bert": dict(
        family="jina_bert", layers=2, hidden=36, heads=3, ffn=44, vocab=61, segments=2, act="gelu",
        dtype=torch.float32, prefix="", old_names=False, tokenizer="bert_word_piece"),
    "tiny_jina_qk": dict(
        family="jina_qk", layers=2, hidden=48, heads=3, ffn=48, vocab=61, segments=2, act="gelu",
        dtype=torch.float32, prefix="", old_names=False, tokenizer="roberta_bpe"),
    # 62 stands for a network of 48.
    "tiny_neobert": dict(
        family="neobert", layers=2, hidden=32, heads=4, ffn=62, vocab=61, segments=0, act="silu",
        dtype=torch.float32, prefix="model.", old_names=False, spread=1.0, tokenizer="bert_word_piece"),
} | tiny_models.DECODERS | tiny_models.PROTEINS


def bert_fields(spec):
    return dict(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], intermediate_size=spec["ffn"],
        hidden_act=spec["act"], max_position_embeddings=max(LENGTHS),
        type_vocab_size=spec["segments"], layer_norm_eps=1e-12)


def bert(spec):
    return transformers.BertModel(transformers.BertConfig(**bert_fields(spec)), add_pooling_layer=False)


def roberta_fields(spec):
    return bert_fields(spec) | dict(max_position_embeddings=max(LENGTHS) + 2, layer_norm_eps=1e-5, pad_token_id=1)


def roberta(spec):
    return transformers.RobertaModel(transformers.RobertaConfig(**roberta_fields(spec)), add_pooling_layer=False)


def electra(spec):
    width = spec.get("embedding", spec["hidden"])
    return transformers.ElectraModel(transformers.ElectraConfig(**bert_fields(spec), embedding_size=width))


def distilbert(spec):
    return transformers.DistilBertModel(transformers.DistilBertConfig(
        vocab_size=spec["vocab"], dim=spec["hidden"], n_layers=spec["layers"], n_heads=spec["heads"],
        hidden_dim=spec["ffn"], activation=spec["act"], max_position_embeddings=max(LENGTHS)))


def mpnet(spec):
    fields = bert_fields(spec) | dict(max_position_embeddings=max(LENGTHS) + 2, layer_norm_eps=1e-5)
    del fields["type_vocab_size"]
    return transformers.MPNetModel(transformers.MPNetConfig(**fields), add_pooling_layer=False)


def modernbert(spec):
    special = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    return transformers.ModernBertModel(transformers.ModernBertConfig(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], intermediate_size=spec["ffn"], hidden_activation=spec["act"],
        max_position_embeddings=max(LENGTHS), local_attention=8, **dict.fromkeys(special, 0)))


def nomic_bert(spec):
    return transformers.NomicBertModel(transformers.NomicBertConfig(
        **bert_fields(spec), rope_parameters=dict(rope_type="default", rope_theta=700.0)))


def jina_v3(spec):
    return transformers.JinaEmbeddingsV3Model(transformers.JinaEmbeddingsV3Config(
        **bert_fields(spec), rope_parameters=dict(rope_type="default", rope_theta=900.0)))


NTK_BASE, NTK_FACTOR = 500.0, 4.0


def gte(spec):
    """With the scaling of the checkpoints' own code, "ntk", which transformers' class does not have."""
    model = transformers.GteModel(transformers.GteConfig(
        **bert_fields(spec), rope_parameters=dict(rope_type="default", rope_theta=NTK_BASE * NTK_FACTOR)))
    model.rotary_emb.inv_freq /= NTK_FACTOR ** (2 * spec["heads"] / spec["hidden"])
    return model


def new_config(fields):
    """As the checkpoints of that code have it."""
    code = dict(AutoModel="Alibaba-NLP/new-impl--modeling.NewModel")
    return {key: value for key, value in fields.items() if key != "rope_parameters"} | dict(
        model_type="new", auto_map=code, position_embedding_type="rope", rope_theta=NTK_BASE,
        rope_scaling=dict(type="ntk", factor=NTK_FACTOR), layer_norm_type="layer_norm", pack_qkv=True)


def jina_config(repository, fields):
    code = dict(AutoModel=f"jinaai/{repository}--modeling_bert.JinaBertModel")
    return fields | dict(auto_map=code, position_embedding_type="alibi", feed_forward_type="geglu")


def xlm_roberta(spec):
    return transformers.XLMRobertaModel(transformers.XLMRobertaConfig(**roberta_fields(spec)), add_pooling_layer=False)


MAKERS = dict(bert=bert, xlm_roberta=xlm_roberta, roberta=roberta, electra=electra, distilbert=distilbert, mpnet=mpnet,
              modernbert=modernbert, neobert=NeoBert, nomic_bert=nomic_bert, gte=gte, jina_v3=jina_v3,
              jina_bert=lambda spec: jina_bert(bert(spec), spec), jina_qk=lambda spec: jina_qk(bert(spec), spec),
              nomic_moe=functools.partial(nomic_moe, length=max(LENGTHS)))
MAKERS |= {name: functools.partial(getattr(tiny_models, name), length=max(LENGTHS))
           for name in ("albert", "deberta_v2", "esm", "gemma3", "t5", "eurobert", *tiny_models.FAMILIES)}
# What the config of a checkpoint is made from transformers' own.
CONFIGS = dict(gte=new_config, esm=lambda fields: fields | dict(vocab_list=None, esmfold_config=None),
               jina_bert=functools.partial(jina_config, "jina-bert-implementation"),
               jina_qk=functools.partial(jina_config, "jina-bert-v2-qk-post-norm"),
               neobert=lambda _: neobert_config(TINY["tiny_neobert"], max(LENGTHS)),
               nomic_moe=lambda _: nomic_moe_config(TINY["tiny_nomic_moe"], max(LENGTHS)))
# Of tokenizers whose model type has another class, or one that does not take all of tokenizer.json.
TOKENIZER_CLASSES = dict.fromkeys(("xlm_roberta", "jina_v3", "nomic_moe"), "PreTrainedTokenizerFast") | dict(
    jina_qk="RobertaTokenizer")
# Of the padding token, which has no position of its own: no case has it.
PADDING_IDS = {"roberta": 1, "xlm-roberta": 1, "mpnet": 1, "esm": 1}


# Linear maps, by names that say "embed".
PROJECTIONS = ("embeddings_project", "embedding_hidden_mapping_in")


def randomize(model, dtype, generator, spread=1.4, gamma=1.0):
    """Weights large enough that attention is far from uniform, small enough that nothing saturates."""
    for name, parameter in sorted(model.named_parameters()):
        noise = torch.randn(parameter.shape, generator=generator)
        if "norm" in name.lower():
            value = noise * 0.2 + (gamma if name.endswith("weight") else 0.0)
        elif parameter.dim() == 1:
            value = noise * 0.2
        elif ("embed" in name or name == "encoder.weight") and not any(projection in name for projection in PROJECTIONS):
            value = noise
        elif "router" in name:  # scores so far apart that rounding sends few rows to another expert
            value = noise
        else:
            value = noise * spread / parameter.shape[1] ** 0.5
        parameter.data = value.to(dtype).to(torch.float32)


def checkpoint_name(name, spec):
    if spec["old_names"]:
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        name = name.replace("LayerNorm.bias", "LayerNorm.beta")
    return spec["prefix"] + name


def write_checkpoint(model, config, spec, folder):
    folder.mkdir(exist_ok=True)
    fields = {key: value for key, value in config.to_dict().items()
              if key != "transformers_version" and value is not None}
    fields = CONFIGS.get(spec.get("family"), dict)(fields)
    (folder / "config.json").write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")
    with tempfile.TemporaryDirectory() as saved:  # with the names that transformers gives files
        model.save_pretrained(saved)
        state = safetensors.torch.load_file(pathlib.Path(saved) / "model.safetensors")
    state = {checkpoint_name(name, spec): value.to(spec["dtype"]).contiguous()
             for name, value in state.items()}
    safetensors.torch.save_file(state, folder / "model.safetensors", {"format": "pt"})


@torch.no_grad()
def case_tensors(model, name, ids, mask, segments, inside=False):
    """Only the rows that the mask keeps: what a packed batch holds. With `inside`, what each layer sees too."""
    types = {"token_type_ids": segments[None]} if hasattr(model.config, "type_vocab_size") else {}
    mask_given = model.scores_bias(mask) if hasattr(model, "scores_bias") else mask[None]
    output = model(input_ids=ids[None], attention_mask=mask_given, output_attentions=inside,
                   output_hidden_states=inside, **types)
    keep = mask.nonzero()[:, 0]
    tensors = {
        f"{name}/token_ids": ids[keep].to(torch.int32),
        f"{name}/positions": keep.to(torch.int32),
        f"{name}/segment_ids": segments[keep].to(torch.int32),
        f"{name}/last_hidden_state": output.last_hidden_state[0][keep].contiguous(),
    }
    if inside:
        attentions = output.attentions or model.seen_weights[-model.config.num_hidden_layers:]
        weights = torch.cat(attentions)  # [layers, heads, len, len]
        tensors[f"{name}/attention_weights"] = weights[:, :, keep][:, :, :, keep].contiguous()
        tensors[f"{name}/hidden_states"] = torch.cat(output.hidden_states)[:, keep].contiguous()
    return tensors


def tiny_cases(model, spec, generator):
    first = PADDING_IDS.get(model.config.model_type, -1) + 1

    def random_ids(length):
        return torch.randint(first, spec["vocab"], (length,), generator=generator)

    tensors = {}
    for length in LENGTHS:
        ones, zeros = torch.ones(length).long(), torch.zeros(length).long()
        tensors |= case_tensors(model, f"len_{length}", random_ids(length), ones, zeros,
                                inside=length in INSIDE_LENGTHS)
    ones, zeros = torch.ones(19).long(), torch.zeros(19).long()
    if spec["segments"] > 1:
        segments = torch.tensor([0] * 8 + [1] * 11)
        tensors |= case_tensors(model, "segments", random_ids(19), ones, segments, inside=True)
    holes = ones.clone()
    holes[[0, 3, 4, 11, 17, 18]] = 0
    tensors |= case_tensors(model, "mask_with_holes", random_ids(19), holes, zeros, inside=True)
    return tensors


def text_cases(model, tokenizer):
    """Embeddings as sentence-transformers makes them: mean of the states, normalized."""
    tokenizer.enable_truncation(max(LENGTHS))
    tensors = {}
    for index, text in enumerate(tiny_tokenizers.TEXTS):
        ids = torch.tensor(tokenizer.encode(text).ids)
        name = f"text_{index}"
        tensors |= case_tensors(model, name, ids, torch.ones_like(ids), torch.zeros_like(ids))
        mean = tensors[f"{name}/last_hidden_state"].mean(dim=0)
        tensors[f"{name}/embedding"] = torch.nn.functional.normalize(mean, dim=0)
    return tensors


def make_tiny(name, spec):
    generator = torch.Generator().manual_seed(SEED)
    model = MAKERS[spec.get("family", "bert")](spec).eval()
    model.set_attn_implementation("eager")
    randomize(model, spec["dtype"], generator, spec.get("spread", 1.4), spec.get("gamma", 1.0))
    folder = HERE / name
    write_checkpoint(model, model.config, spec, folder)
    tensors = tiny_cases(model, spec, generator)
    if "tokenizer" in spec:
        tokenizer = getattr(tiny_tokenizers, spec["tokenizer"])()
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        if spec["family"] in TOKENIZER_CLASSES:
            named = dict(tokenizer_class=TOKENIZER_CLASSES[spec["family"]])
            (folder / "tokenizer_config.json").write_text(json.dumps(named) + "\n")
        tensors |= text_cases(model, tokenizer)
    safetensors.torch.save_file(tensors, folder / "golden.safetensors")


def load_sentence_model(folder):
    import sentence_transformers
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


# How many of the short texts have hidden states, and how many of those the states and weights of each layer.
REAL = {"all-MiniLM-L6-v2": dict(states=4, inside=2), "all-mpnet-base-v2": dict(states=2, inside=0)}


def make_real(name, states, inside):
    source = subprocess.run([FETCH_MODEL, name], check=True, capture_output=True, text=True).stdout.strip()
    sentence_model = load_sentence_model(source)
    # One text at a time: padding changes the last bits.
    tensors = {}
    for index, text in enumerate(TEXTS):
        ids = sentence_model.tokenize([text])["input_ids"][0]
        embedding = sentence_model.encode([text], convert_to_tensor=True)[0]
        tensors[f"text_{index:02}/token_ids"] = ids.to(torch.int32)
        tensors[f"text_{index:02}/embedding"] = embedding.contiguous()
    encoder = transformers.AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    for index, text in enumerate(SHORT_TEXTS[:states]):
        ids = sentence_model.tokenize([text])["input_ids"][0]
        tensors |= case_tensors(encoder, f"states_{index}", ids, torch.ones_like(ids),
                                torch.zeros_like(ids), inside=index < inside)
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    safetensors.torch.save_file(tensors, folder / "golden.safetensors")
    (HERE / "real_texts.json").write_text(json.dumps(TEXTS, indent=1, ensure_ascii=False) + "\n")


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or [*TINY, *REAL]:
        if name in TINY:
            make_tiny(name, TINY[name])
        else:
            make_real(name, **REAL[name])
    (HERE / "tiny_texts.json").write_text(json.dumps(tiny_tokenizers.TEXTS, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
