// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

// One sequence and what PyTorch made of it; tests/golden/README.md describes the files.
struct GoldenCase {
  std::string name;
  std::vector<int32_t> token_ids;        // [len]
  std::vector<int32_t> positions;        // [len]
  std::vector<int32_t> segment_ids;      // [len]
  std::vector<float> last_hidden_state;  // [len, hidden], or empty
  std::vector<float> embedding;          // [hidden], or empty
  std::vector<float> attention_weights;  // [layers, heads, len, len], or empty
  std::vector<float> hidden_states;      // [layers + 1, len, hidden], or empty
};

// The tiny random checkpoints: folder names below tests/golden/encoder, for parameterized tests.
inline constexpr const char* kTinyModels[] = {
    "tiny_gelu",       "tiny_gelu_tanh", "tiny_relu_bf16",     "tiny_roberta",
    "tiny_distilbert", "tiny_electra",   "tiny_mpnet",         "tiny_modernbert",
    "tiny_nomic_bert", "tiny_gte",       "tiny_jina_bert",     "tiny_xlm_roberta",
    "tiny_jina_v3",    "tiny_qwen3",     "tiny_deberta_v2",    "tiny_gemma3",
    "tiny_t5",         "tiny_t5_gated",  "tiny_eurobert",      "tiny_qwen2",
    "tiny_llama",      "tiny_mistral",   "tiny_electra_small", "tiny_albert",
    "tiny_nomic_moe",  "tiny_esm",       "tiny_esm_1b",        "tiny_jina_qk",
    "tiny_neobert"};

// The folder of a model's golden data, from the source tree's root; a tiny model's is its
// checkpoint too.
std::string GoldenDirectory(const std::string& model);

// A model's cases in the order of their names.
absl::StatusOr<std::vector<GoldenCase>> ReadGoldenCases(const std::string& model);

// The texts behind the cases text_00, text_01, ... of the real models.
inline constexpr const char* kRealTexts = "real_texts.json";
// The texts behind the cases text_0, text_1, ... of each tiny model that has a tokenizer.
inline constexpr const char* kTinyTexts = "tiny_texts.json";
absl::StatusOr<std::vector<std::string>> ReadGoldenTexts(const std::string& file);

// The real all-MiniLM-L6-v2's folder: ATTENDANT_TEST_MODEL, or where the quick start puts it.
// NOT_FOUND, saying how to get it, when there is none: a test must fail with that, not skip.
absl::StatusOr<std::string> RealModelDirectory();

}  // namespace attendant
