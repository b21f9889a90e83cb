// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/literals.h"
#include "server/text/models/token_model.h"
#include "server/text/sentencepiece/families.h"

namespace attendant {

// The settings with which LlamaTokenizer of transformers makes a tokenizer. Of a tokenizer.json it
// takes only vocabulary, merges and the tokens around texts.
struct LlamaSettings {
  bool add_prefix_space = true;
  bool legacy = false;                  // true: text behind a special token begins with a space
  std::vector<Literal> named_tokens{};  // in place of those of TokenizerSettings
};

// The class's tokens where no file names others.
absl::Span<const FamilyRole> LlamaRoles();

// True if AutoTokenizer makes LlamaTokenizer of this file. False if its pre-tokenizer or decoder is
// ByteLevel, as in files of Llama 3.
bool MakesLlama(const JsonFields& file);

// The parts that the class makes in place of the file's, as a tokenizer.json.
std::string PartsOf(const LlamaSettings& settings);

// Reports a failure in `file` unless its model has the settings that the class makes. Settings for
// characters outside the vocabulary may differ if the vocabulary has all bytes.
void CheckLlama(const JsonFields& file, const ModelPart& part);

}  // namespace attendant
