// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"

namespace attendant {

enum class TokenHeadKind : uint8_t {
  kMaskedLm,      // a logit for each id of the vocabulary: fill-mask, SPLADE
  kTokenLabels,   // a logit for each label: named entities
  kTokenWeights,  // one weight: the sparse part of BGE-M3
  kVectors,       // a vector: ColBERT, the multi-vector part of BGE-M3
};

// The options of SPLADE. The weight of a vocabulary id is pool(activation(logits of the id at all
// tokens)), with activation(x) = log(1 + relu(x)).
struct SpladeOptions {
  bool sum = false;    // else the largest
  bool twice = false;  // log(1 + activation(x)), as OpenSearch's third generation has it
  friend bool operator==(const SpladeOptions&, const SpladeOptions&) = default;
};

// The settings of a head that a folder has beside its weights.
struct TokenHeadOptions {
  std::optional<SpladeOptions> splade{};  // kMaskedLm: unset, it makes no sparse vectors
  std::optional<int32_t> mask_id{};       // kMaskedLm: unset, it predicts nothing at masks
  // kTokenWeights: they have no weight; kVectors: no vector in documents. Ascending.
  std::vector<int32_t> ignored_ids{};
  bool skip_first = false;        // kVectors: the first token has no vector
  bool late_interaction = false;  // kVectors: of ColBERT, whose texts are queries or documents
};

// A head that a folder has, but in a form that is not read.
struct UnreadHead {
  TokenHeadKind kind = TokenHeadKind::kVectors;
  std::string reason;  // and a remedy
};

// A head on every token, as a checkpoint has it: row = out(norm(activation(dense(state)))), or
// out(state) where there is no dense.
struct TokenHead {
  TokenHeadKind kind = TokenHeadKind::kMaskedLm;
  LinearWeights dense{};  // [width, hidden]; an empty weight: none, and width is hidden
  Activation activation = Activation::kGeluErf;
  LayerNormWeights norm{};  // [width], behind dense, always
  float norm_epsilon = 0;
  LinearWeights out{};                // [outputs, width]
  std::vector<std::string> labels{};  // [outputs] of kTokenLabels
  TokenHeadOptions options{};
  std::shared_ptr<const void> storage{};  // keeps the memory alive that the weights point into
};

}  // namespace attendant
