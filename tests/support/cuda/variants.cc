// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "tests/support/cuda/encoder_case.h"

namespace attendant::cuda_test {
namespace {

Variant With(const char* name, const std::function<void(Variant&)>& change) {
  Variant variant{name, SmallConfig(), {}, {}};
  variant.config.layers = 3;
  change(variant);
  return variant;
}

void NormFirst(Variant& variant, bool rms) {
  variant.config.norm_place = ATTENDANT_CUDA_NORM_PRE;
  variant.config.rms_norm = rms ? 1 : 0;
  variant.parts.final_norm = true;
  variant.parts.biases = false;
}

void Gate(Variant& variant, int32_t activation) {
  variant.config.gated_ffn = 1;
  variant.config.activation = activation;
}

void Turn(Variant& variant, double base) {
  variant.parts.rotary_base = base;
  variant.parts.learned_positions = false;
}

// Layers 0 and 2.
void MakeLocal(Variant& variant, int64_t window) {
  variant.config.window = window;
  variant.parts.local_layers = 5;
}

std::vector<Variant> ListRotary() {
  return {With("ModernBERT",
               [](Variant& v) {
                 NormFirst(v, false);
                 Gate(v, ATTENDANT_CUDA_GELU_ERF);
                 Turn(v, 160000);
                 MakeLocal(v, 20);
                 v.parts.first_attention_norm = false;
                 v.parts.local_rotary_base = 10000;
                 v.holes.gaps = true;
               }),
          With("Nomic",
               [](Variant& v) {
                 Gate(v, ATTENDANT_CUDA_SILU);
                 Turn(v, 1000);
                 v.parts.biases = false;
               }),
          With("GTE", [](Variant& v) {
            Gate(v, ATTENDANT_CUDA_GELU_ERF);
            Turn(v, 500000);
            v.holes.gaps = true;
          })};
}

std::vector<Variant> ListDecoders() {
  return {With("EuroBERT",
               [](Variant& v) {
                 NormFirst(v, true);
                 Gate(v, ATTENDANT_CUDA_SILU);
                 Turn(v, 250000);
                 v.parts.embedding_norm = false;
                 v.config.heads = 4;
                 v.config.kv_heads = 2;
               }),
          With("Qwen3",
               [](Variant& v) {
                 NormFirst(v, true);
                 Gate(v, ATTENDANT_CUDA_SILU);
                 Turn(v, 1e6);
                 v.parts.embedding_norm = false;
                 v.parts.query_key_norm = true;
                 v.config.heads = 4;
                 v.config.kv_heads = 2;
                 v.config.head_width = 64;
                 v.config.causal = 1;
                 v.holes.gaps = true;
               }),
          With("Mistral",
               [](Variant& v) {
                 NormFirst(v, true);
                 Gate(v, ATTENDANT_CUDA_SILU);
                 Turn(v, 10000);
                 v.parts.embedding_norm = false;
                 v.parts.local_rotary_base = 10000;
                 v.parts.local_layers = 7;
                 v.config.heads = 4;
                 v.config.kv_heads = 1;
                 v.config.causal = 1;
                 v.config.window = 9;
                 v.holes.gaps = true;
               }),
          With("EmbeddingGemma", [](Variant& v) {
            NormFirst(v, true);
            Gate(v, ATTENDANT_CUDA_GELU_TANH);
            Turn(v, 1e6);
            MakeLocal(v, 20);
            v.parts.local_rotary_base = 10000;
            v.parts.embedding_norm = false;
            v.parts.query_key_norm = true;
            v.config.norm_place = ATTENDANT_CUDA_NORM_BOTH;
            v.config.kv_heads = 1;
            v.config.head_width = 256;
            v.config.query_scale = 0.0625f;
            v.config.embedding_scale = 8;
            v.holes.gaps = true;
          })};
}

std::vector<Variant> ListOthers() {
  return {With("Jina v2",
               [](Variant& v) {
                 Gate(v, ATTENDANT_CUDA_GELU_ERF);
                 v.parts.learned_positions = false;
                 v.parts.score_by_distance = true;
                 v.holes.gaps = true;
               }),
          With("Jina v2 for code",
               [](Variant& v) {
                 Gate(v, ATTENDANT_CUDA_GELU_ERF);
                 v.parts.learned_positions = false;
                 v.parts.score_by_distance = true;
                 v.parts.whole_query_key_norm = true;
                 v.parts.second_attention_norm = true;
               }),
          With("whole queries and keys, RMS norms, rotary positions",
               [](Variant& v) {
                 NormFirst(v, true);
                 Turn(v, 10000);
                 v.parts.whole_query_key_norm = true;
                 v.config.kv_heads = 1;
               }),
          With("MPNet", [](Variant& v) { v.parts.score_by_distance = true; }),
          With("T5",
               [](Variant& v) {
                 NormFirst(v, true);
                 v.config.activation = ATTENDANT_CUDA_RELU;
                 v.config.query_scale = 0.4f;
                 v.parts.embedding_norm = false;
                 v.parts.learned_positions = false;
                 v.parts.score_by_distance = true;
                 v.holes.gaps = true;
               }),
          With("ESM-2",
               [](Variant& v) {
                 NormFirst(v, false);
                 Turn(v, 10000);
                 v.parts.embedding_norm = false;
                 v.config.embedding_scale = 0.88f;
                 v.config.scales_tokens = 1;
               }),
          With("ColBERT", [](Variant& v) { v.holes.unattended = true; }),
          With("ALBERT",
               [](Variant& v) {
                 v.config.activation = ATTENDANT_CUDA_GELU_TANH;
                 v.config.embedding_width = 32;
                 v.parts.shared_layers = true;
               }),
          With("wide raw embeddings, norms before",
               [](Variant& v) {
                 NormFirst(v, true);
                 v.parts.embedding_norm = false;
                 v.config.embedding_scale = 2;
                 v.config.embedding_width = 272;  // more than any layer has
               }),
          With("causal, local, scores by distance, a final norm", [](Variant& v) {
            v.parts.embedding_norm = false;
            v.parts.final_norm = true;
            v.parts.score_by_distance = true;
            v.config.causal = 1;
            v.config.rms_norm = 1;
            v.config.activation = ATTENDANT_CUDA_SILU;
            MakeLocal(v, 9);
            v.holes = {.gaps = true, .unattended = true};
          })};
}

}  // namespace

std::vector<Variant> ListVariants() {
  std::vector<Variant> variants = ListRotary();
  for (const std::vector<Variant>& more : {ListDecoders(), ListOthers()}) {
    variants.insert(variants.end(), more.begin(), more.end());
  }
  return variants;
}

}  // namespace attendant::cuda_test
