// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/token_model.h"

#include <cstddef>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/part_table.h"
#include "server/text/models/model_kinds.h"

namespace attendant {
namespace {

constexpr PartKind<ModelPart> kTokenModels[] = {
    {"BPE", ReadBpe},
    {"Unigram", ReadUnigram},
    {"WordPiece", ReadWordPiece},
};

}  // namespace

std::string ModelType(const JsonFields& file) {
  const JsonFields fields = file.Object("model");
  if (!fields.Has("type")) {
    for (const auto& [field, type] : {std::pair{"merges", "BPE"},
                                      {"max_input_chars_per_word", "WordPiece"},
                                      {"unk_id", "Unigram"}}) {
      if (fields.Has(field)) return type;
    }
  }
  return fields.String("type");
}

ModelPart ReadModel(const JsonFields& file) {
  return ReadPart<ModelPart>(file.Object("model"), "model type", ModelType(file), kTokenModels);
}

std::vector<VocabularyEntry> ReadVocabulary(const JsonFields& vocab) {
  std::vector<VocabularyEntry> vocabulary;
  std::unordered_set<int32_t> ids;
  size_t bytes = 0;
  for (const std::string& token : vocab.Keys()) {
    if (!vocab.ok()) break;
    vocabulary.push_back({token, static_cast<int32_t>(vocab.Integer(token, kMaxTokenId))});
    if (!ids.insert(vocabulary.back().id).second) vocab.Fail(token, "has another token's id");
    bytes += token.size();
  }
  CheckVocabularyBytes(vocab, "model.vocab", bytes);
  return vocabulary;
}

void CheckVocabularyBytes(const JsonFields& fields, absl::string_view path, size_t bytes) {
  if (bytes <= kMaxVocabularyBytes) return;
  fields.Fail(absl::InvalidArgumentError(
      absl::StrCat(path, " has ", bytes, " bytes of tokens, the limit is ", kMaxVocabularyBytes)));
}

}  // namespace attendant
