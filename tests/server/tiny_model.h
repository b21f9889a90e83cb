// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/encoder_config.h"

namespace attendant {

// A checkpoint with everything that a sentence model has, small enough for the reference back end.
inline constexpr EncoderConfig kTinyConfig{.layers = 2,
                                           .heads = 2,
                                           .hidden = 16,
                                           .ffn = 32,
                                           .vocab = 64,
                                           .max_positions = 64,
                                           .segment_types = 2,
                                           .layer_norm_epsilon = 1e-12f,
                                           .activation = Activation::kGeluErf};
inline constexpr int64_t kTinyMaxTextTokens = 32;

// Its words, and a token "##lo" that continues them; everything else is [UNK].
inline constexpr int32_t kUnk = 1, kCls = 2, kSep = 3, kHello = 4, kWorld = 5, kContinued = 6;

// Its tokenizer.json, which says that a text's words are of this segment.
std::string TinyTokenizer(int64_t text_type_id);

// Writes it: mean pooling, normalized, text cut at kTinyMaxTextTokens.
void WriteTinyModel(const std::string& directory);

// The same encoder with a classifier of these labels: of one, a reranker. REQUIRES: JSON needs no
// escapes for them.
void WriteTinyClassifier(const std::string& directory, const std::vector<std::string>& labels);

// Writes an attention module of 2 heads, 4 values wide.
void WriteTinyModule(const std::string& directory);

}  // namespace attendant
