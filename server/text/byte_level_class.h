// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/text/base/json_fields.h"
#include "server/text/models/token_model.h"
#include "server/text/sentencepiece/families.h"

namespace attendant {

// A class of transformers that takes only vocabulary, merges and the tokens around texts of a
// tokenizer.json, and makes a byte-level BPE tokenizer of them.
struct ByteLevelClass {
  absl::string_view name;           // without "Fast"
  absl::string_view normalizer;     // JSON, as in a tokenizer.json
  absl::string_view pre_tokenizer;  // likewise; $0: whether a space comes before a text
  absl::Span<const FamilyRole> roles;
};

// Null: not known.
const ByteLevelClass* FindByteLevelClass(absl::string_view name);

// The parts that the class makes in place of the file's, as a tokenizer.json.
std::string PartsOf(const ByteLevelClass& made, bool add_prefix_space);

// Reports a failure in `file` unless its model has the settings that the class makes. Settings for
// characters outside the vocabulary may differ if the vocabulary has all bytes.
void CheckModel(const JsonFields& file, const ByteLevelClass& made, const ModelPart& part);

}  // namespace attendant
