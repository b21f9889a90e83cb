// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant {

// A token of a family's own.
struct FamilyToken {
  absl::string_view text;
  float score = 0;
};

// A special token, and the field of tokenizer_config.json that may name it.
struct FamilyRole {
  absl::string_view field;
  absl::string_view token;
};

// The rules by which transformers makes a tokenizer of a family's sentencepiece model.
struct SentencePieceFamily {
  absl::string_view tokenizer_class;  // without "Fast"
  absl::string_view model_type;       // of config.json
  // The ids are those of `first`, of the pieces behind the first `dropped`, and of `last`. The
  // model's own first pieces must be `expected`.
  absl::Span<const FamilyToken> first;
  absl::Span<const absl::string_view> expected;
  size_t dropped = 0;
  absl::Span<const FamilyToken> last;
  absl::Span<const absl::string_view> extras;  // more special tokens of the class
  int64_t extra_ids = 0;  // <extra_id_N>, falling, behind `last`; extra_ids says another number
  int64_t unk_id = 0;
  bool finds_unk = false;  // in a tokenizer.json it is the id of the unk_token instead
  bool mask_strips_left = false;
  bool cleans_spaces = false;        // instead of the model's own normalization
  bool cleans_letters = false;       // before it: quotes, accents and capitals
  absl::string_view without_prefix;  // Metaspace's prepend_scheme without add_prefix_space
  absl::Span<const FamilyRole> roles;
  bool keeps_template = false;     // of a tokenizer.json that has one
  absl::string_view single, pair;  // "bos_token $A eos_token", by roles; "$B:1": in segment 1
};

// Null: not known. `tokenizer_class` without "Fast", or empty: `model_type` decides.
const SentencePieceFamily* FindSentencePieceFamily(absl::string_view tokenizer_class,
                                                   absl::string_view model_type);

}  // namespace attendant
