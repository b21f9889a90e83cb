# SPDX-License-Identifier: Apache-2.0
"""Tiny models of families whose configs say more than BERT's, with transformers' classes."""

import torch
import transformers


def decoder(family, tokenizer):
    return dict(family=family, layers=2, hidden=32, heads=4, ffn=40, vocab=61, segments=0, act="silu",
                dtype=torch.float32, prefix="model.", old_names=False, spread=1.0, tokenizer=tokenizer)


def protein_encoder(**more):
    return dict(family="esm", layers=2, hidden=32, heads=2, ffn=40, vocab=33, segments=0, dtype=torch.float32, prefix="esm.",
                old_names=False, spread=1.0, tokenizer="EsmTokenizer", **more)


PROTEINS = {"tiny_esm": protein_encoder(position_embedding_type="rotary", emb_layer_norm_before=False),
            "tiny_esm_1b": protein_encoder(position_embedding_type="absolute", emb_layer_norm_before=True)}
DECODERS = {"tiny_qwen2": decoder("qwen2", "qwen_bpe"), "tiny_qwen3": decoder("qwen3", "qwen_bpe"),
            "tiny_llama": decoder("llama", "eurobert_bpe"), "tiny_mistral": decoder("mistral", "mistral_bpe")}
FAMILIES = [spec["family"] for spec in DECODERS.values()]


def albert(spec, length):
    return transformers.AlbertModel(transformers.AlbertConfig(
        vocab_size=spec["vocab"], embedding_size=24, hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_hidden_groups=2, num_attention_heads=spec["heads"], intermediate_size=spec["ffn"], hidden_act=spec["act"],
        max_position_embeddings=length, type_vocab_size=spec["segments"]), add_pooling_layer=False)


def deberta_v2(spec, length):
    """With buckets of distances that begin to be logarithmic at 4, and the farthest distance that a text has."""
    model = transformers.DebertaV2Model(transformers.DebertaV2Config(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], intermediate_size=spec["ffn"], hidden_act=spec["act"],
        max_position_embeddings=length, type_vocab_size=spec["segments"], layer_norm_eps=1e-7,
        relative_attention=True, position_buckets=8, max_relative_positions=-1, norm_rel_ebd="layer_norm",
        share_att_key=True, pos_att_type=["p2c", "c2p"], position_biased_input=False))
    model.seen_weights = []  # transformers' encoder drops what its layers return
    for layer in model.encoder.layer:
        layer.attention.self.register_forward_hook(lambda _, __, output: model.seen_weights.append(output[1]))
    return model


def esm(spec, length):
    """Rotary positions turn by rates that were rounded in training."""
    fields = {name: spec[name] for name in ("position_embedding_type", "emb_layer_norm_before")}
    rows = length + 2 if spec["position_embedding_type"] == "absolute" else length
    model = transformers.EsmModel(transformers.EsmConfig(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], intermediate_size=spec["ffn"], max_position_embeddings=rows,
        layer_norm_eps=1e-5, mask_token_id=32, pad_token_id=1, token_dropout=True, **fields), add_pooling_layer=False)
    if model.rotary_embeddings is not None:
        model.rotary_embeddings.inv_freq.copy_(model.rotary_embeddings.inv_freq.half())
    return model


def gemma3(spec, length):
    """Windows of 4 to either side in the first and the last layer, one head of keys for all of queries."""
    ropes = dict(full_attention=dict(rope_type="default", rope_theta=3000.0),
                 sliding_attention=dict(rope_type="default", rope_theta=200.0))
    return transformers.Gemma3TextModel(transformers.Gemma3TextConfig(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], num_key_value_heads=1, head_dim=12, intermediate_size=spec["ffn"],
        hidden_activation=spec["act"], max_position_embeddings=length, query_pre_attn_scalar=10, sliding_window=8,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_parameters=ropes,
        use_bidirectional_attention=True))


def t5(spec, length):
    """Heads of 12 on a hidden size of 32."""
    return transformers.T5EncoderModel(transformers.T5Config(
        vocab_size=spec["vocab"], d_model=spec["hidden"], d_kv=12, d_ff=spec["ffn"], num_layers=spec["layers"],
        num_heads=spec["heads"], relative_attention_num_buckets=8, relative_attention_max_distance=20,
        feed_forward_proj=spec["act"], n_positions=length))


def decoder_fields(spec, length):
    return dict(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], num_key_value_heads=2, intermediate_size=spec["ffn"],
        hidden_act=spec["act"], max_position_embeddings=length)


def qwen2(spec, length):
    """Without its mask, as the GTE models have it."""
    return transformers.Qwen2Model(transformers.Qwen2Config(
        **decoder_fields(spec, length), is_causal=False, rope_parameters=dict(rope_type="default", rope_theta=3000.0)))


def qwen3(spec, length):
    """Four heads of 12 on a hidden size of 32; two of keys and values."""
    return transformers.Qwen3Model(transformers.Qwen3Config(
        **decoder_fields(spec, length), head_dim=12, rope_parameters=dict(rope_type="default", rope_theta=3000.0)))


def llama(spec, length):
    """Whose first pair turns as ever, whose second one a little more slowly, the others four times."""
    rope = dict(rope_type="llama3", rope_theta=3000.0, factor=4.0, low_freq_factor=0.2, high_freq_factor=1.0,
                original_max_position_embeddings=16)
    return transformers.LlamaModel(transformers.LlamaConfig(**decoder_fields(spec, length), rope_parameters=rope))


def mistral(spec, length):
    return transformers.MistralModel(transformers.MistralConfig(
        **decoder_fields(spec, length), head_dim=12, sliding_window=5,
        rope_parameters=dict(rope_type="default", rope_theta=3000.0)))


def eurobert(spec, length):
    return transformers.EuroBertModel(transformers.EuroBertConfig(
        vocab_size=spec["vocab"], hidden_size=spec["hidden"], num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"], num_key_value_heads=2, intermediate_size=spec["ffn"],
        hidden_act=spec["act"], max_position_embeddings=length, bos_token_id=0, eos_token_id=1, pad_token_id=3,
        rope_parameters=dict(rope_type="default", rope_theta=3000.0)))
