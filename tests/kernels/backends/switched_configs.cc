// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/backends/switched_configs.h"

namespace attendant {
namespace {

Switched With(const char* name, void (*change)(EncoderConfig&)) {
  EncoderConfig config{.layers = 3,
                       .heads = 4,
                       .hidden = 64,
                       .ffn = 48,  // less than hidden
                       .vocab = 101,
                       .max_positions = 512,
                       .segment_types = 2,
                       .layer_norm_epsilon = 1e-5f};
  change(config);
  return {name, config};
}

void MakeDecoder(EncoderConfig& c) {
  c.norm_place = NormPlace::kPre;
  c.norm_kind = NormKind::kRms;
  c.embedding_norm = false;
  c.final_norm = true;
  c.biases = Biases::kOptional;
  c.activation = Activation::kSilu;
  c.gated_ffn = true;
  c.positions = Positions::kRotary;
  c.kv_heads = 1;
  c.causal = true;
}

const std::vector<Switched> kAllSwitched = {
    With("pre", [](EncoderConfig& c) { c.norm_place = NormPlace::kPre; }),
    With("final", [](EncoderConfig& c) { c.final_norm = true; }),
    With("bare", [](EncoderConfig& c) { c.biases = Biases::kOptional; }),
    With("pre_final_bare_relu",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.final_norm = true;
           c.biases = Biases::kOptional;
           c.activation = Activation::kRelu;
         }),
    With("silu", [](EncoderConfig& c) { c.activation = Activation::kSilu; }),
    With("gated", [](EncoderConfig& c) { c.gated_ffn = true; }),
    With("experts",
         [](EncoderConfig& c) {
           c.experts = 5;
           c.experts_per_token = 2;
           c.expert_layers.set(1).set(2);
         }),
    // As Nomic v2, but with experts in the first layer.
    With("experts_rotary_bare",
         [](EncoderConfig& c) {
           c.biases = Biases::kOptional;
           c.positions = Positions::kRotary;
           c.experts = 8;
           c.experts_per_token = 3;
           c.expert_layers.set(0).set(2);
         }),
    With("experts_pre_final",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.final_norm = true;
           c.experts = 4;
           c.experts_per_token = 1;
           c.expert_layers.set(0).set(1);
         }),
    With("experts_output_norms",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kBoth;
           c.activation = Activation::kSilu;
           c.experts = 3;
           c.experts_per_token = 3;
           c.expert_layers.set(2);
         }),
    With("rotary", [](EncoderConfig& c) { c.positions = Positions::kRotary; }),
    With("alibi",
         [](EncoderConfig& c) {
           c.positions = Positions::kNone;
           c.score_bias = ScoreBias::kAlibi;
         }),
    With("buckets",
         [](EncoderConfig& c) {
           c.score_bias = ScoreBias::kBuckets;
           c.bias_buckets = 32;
           c.bias_max_distance = 128;
         }),
    With("local",
         [](EncoderConfig& c) {
           c.window = 9;
           c.local_layers.set(0).set(2);
         }),
    With("local_itself", [](EncoderConfig& c) { c.local_layers.set(0).set(2); }),
    With("local_itself_causal",
         [](EncoderConfig& c) {
           c.causal = true;
           c.local_layers.set(1);
         }),
    With("local_alibi_pre",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.score_bias = ScoreBias::kAlibi;
           c.window = 9;
           c.local_layers.set(1);
         }),
    With("rms",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.norm_kind = NormKind::kRms;
           c.final_norm = true;
         }),
    With("raw_embeddings",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.embedding_norm = false;
         }),
    With("wide_heads", [](EncoderConfig& c) { c.head_width = 24; }),
    With("narrow_heads", [](EncoderConfig& c) { c.head_width = 12; }),
    With("shared_keys", [](EncoderConfig& c) { c.kv_heads = 2; }),
    With("query_key_norm", [](EncoderConfig& c) { c.query_key_norm = QueryKeyNorm::kHead; }),
    With("whole_query_key_norm",
         [](EncoderConfig& c) {
           c.kv_heads = 2;
           c.query_key_norm = QueryKeyNorm::kWhole;
         }),
    With("whole_query_key_norm_rms_rotary",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.norm_kind = NormKind::kRms;
           c.positions = Positions::kRotary;
           c.query_key_norm = QueryKeyNorm::kWhole;
         }),
    // As Jina's code for code.
    With("second_attention_norm_alibi_gated",
         [](EncoderConfig& c) {
           c.gated_ffn = true;
           c.positions = Positions::kNone;
           c.score_bias = ScoreBias::kAlibi;
           c.query_key_norm = QueryKeyNorm::kWhole;
           c.second_attention_norm = true;
         }),
    With("causal", [](EncoderConfig& c) { c.causal = true; }),
    With("causal_local",
         [](EncoderConfig& c) {
           c.causal = true;
           c.window = 9;
           c.local_layers.set(1);
         }),
    With("output_norms", [](EncoderConfig& c) { c.norm_place = NormPlace::kBoth; }),
    With("query_scale", [](EncoderConfig& c) { c.query_scale = 0.4f; }),
    With("embedding_scale",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.embedding_norm = false;
           c.embedding_scale = 3;
         }),
    With("dropped_token", [](EncoderConfig& c) { c.dropped_token = 7; }),
    // As ESM-2.
    With("dropped_token_pre_rotary",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.embedding_norm = false;
           c.final_norm = true;
           c.embedding_scale = 0.88f;
           c.dropped_token = 100;
           c.positions = Positions::kRotary;
           c.rotary.rates = {1, 0.5f, 0.25f, 0.12f, 0.06f, 0.03f, 0.01f, 0};
         }),
    With("narrow_embeddings", [](EncoderConfig& c) { c.embedding_width = 20; }),
    With("wide_raw_embeddings",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.embedding_norm = false;
           c.embedding_width = 264;  // more than any layer has
         }),
    // As DeBERTa, with distances beyond the last bucket.
    With("disentangled",
         [](EncoderConfig& c) {
           c.positions = Positions::kNone;
           c.score_bias = ScoreBias::kDisentangled;
           c.bias_buckets = 128;
           c.bias_max_distance = 300;
           c.query_scale = 0.15f;
         }),
    With("disentangled_learned_pre",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.score_bias = ScoreBias::kDisentangled;
           c.bias_buckets = 8;
           c.bias_max_distance = 40;
         }),
    // As EmbeddingGemma.
    With("output_norms_rms_local_shared",
         [](EncoderConfig& c) {
           MakeDecoder(c);
           c.causal = false;
           c.norm_place = NormPlace::kBoth;
           c.embedding_scale = 8;
           c.activation = Activation::kGeluTanh;
           c.query_scale = 0.25f;
           c.query_key_norm = QueryKeyNorm::kHead;
           c.window = 20;
           c.local_layers.set(0).set(2);
         }),
    // As T5.
    With("buckets_rms_relu",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.norm_kind = NormKind::kRms;
           c.embedding_norm = false;
           c.final_norm = true;
           c.biases = Biases::kOptional;
           c.activation = Activation::kRelu;
           c.positions = Positions::kNone;
           c.score_bias = ScoreBias::kBuckets;
           c.bias_buckets = 32;
           c.bias_max_distance = 128;
           c.query_scale = 1;
         }),
    // As Qwen3.
    With("causal_rms_rotary_shared",
         [](EncoderConfig& c) {
           MakeDecoder(c);
           c.head_width = 32;
           c.query_key_norm = QueryKeyNorm::kHead;
         }),
    // As Mistral, with Llama's long waves.
    With("causal_rms_local",
         [](EncoderConfig& c) {
           MakeDecoder(c);
           c.local_rotary.long_waves = {
               .factor = 8, .low = 0.5, .high = 2, .trained_positions = 16};
           c.window = 7;
           c.local_layers.set(0).set(1).set(2);
         }),
    // As ModernBERT.
    With("pre_rotary_local_gated",
         [](EncoderConfig& c) {
           c.norm_place = NormPlace::kPre;
           c.first_attention_norm = false;
           c.final_norm = true;
           c.biases = Biases::kOptional;
           c.gated_ffn = true;
           c.positions = Positions::kRotary;
           c.rotary.base = 160000;
           c.local_rotary.frequency_scale = 0.5;
           c.window = 20;
           c.local_layers.set(1);
         }),
    // As ColBERT: its queries end in mask tokens that none attends to.
    With("unattended", [](EncoderConfig& c) { c.unattended_tokens = true; }),
    With("unattended_local_alibi",
         [](EncoderConfig& c) {
           c.unattended_tokens = true;
           c.score_bias = ScoreBias::kAlibi;
           c.window = 9;
           c.local_layers.set(1);
         }),
    With("unattended_disentangled",
         [](EncoderConfig& c) {
           c.unattended_tokens = true;
           c.positions = Positions::kNone;
           c.score_bias = ScoreBias::kDisentangled;
           c.bias_buckets = 8;
           c.bias_max_distance = 40;
         }),
    // As gte.
    With("rotary_gated_silu",
         [](EncoderConfig& c) {
           c.activation = Activation::kSilu;
           c.gated_ffn = true;
           c.positions = Positions::kRotary;
         }),
};

}  // namespace

const std::vector<Switched>& AllSwitched() { return kAllSwitched; }

}  // namespace attendant
