// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The part of a sentencepiece model that decides ids: fields of its ModelProto, TrainerSpec and
// NormalizerSpec, with their defaults.
struct SentencePieceModel {
  enum class PieceType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;  // valid UTF-8, not empty
    float score = 0;   // finite
    PieceType type = PieceType::kNormal;
  };

  std::vector<Piece> pieces;  // by id
  uint64_t model_type = 1;    // 1 Unigram, 2 BPE, 3 word, 4 char
  bool treat_whitespace_as_suffix = false;
  bool byte_fallback = false;
  bool add_dummy_prefix = true;
  bool escape_whitespaces = true;
  std::string precompiled_charsmap;
};

inline constexpr size_t kMaxSentencePieces = size_t{1} << 20;  // the largest known have 256,000

// Reads the bytes of a model file. Trusts nothing in them: INVALID_ARGUMENT, naming the field, for
// what is cut off, of another type, not UTF-8, or more than kMaxSentencePieces.
absl::StatusOr<SentencePieceModel> ParseSentencePiece(absl::string_view bytes);

}  // namespace attendant
