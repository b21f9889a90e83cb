// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/models/bpe.h"
#include "server/text/models/model_kinds.h"
#include "server/text/unicode/readable.h"

namespace attendant {
namespace {

// "a b", or ["a", "b"]. False for the version line that old files begin with.
bool ReadPair(const JsonArrayItem& item, std::string& left, std::string& right) {
  if (!item.IsString()) {
    left = item.String(0);
    right = item.String(1);
    return true;
  }
  const std::string line = item.String();
  if (absl::StartsWith(line, "#version")) return false;
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
    item.Fail("is not two tokens with one space between");
    return false;
  }
  left = line.substr(0, space);
  right = line.substr(space + 1);
  return true;
}

std::vector<Merge> ReadMerges(const JsonFields& fields, const JsonFields& vocab,
                              const std::string& prefix) {
  std::vector<Merge> merges;
  for (const JsonArrayItem& item : fields.Items("merges")) {
    std::string left, right;
    const bool read = ReadPair(item, left, right);
    if (!fields.ok()) break;
    if (!read) continue;
    if (!absl::StartsWith(right, prefix)) item.Fail("lacks continuing_subword_prefix");
    const auto id = [&](const std::string& token) {
      if (vocab.Has(token)) return static_cast<int32_t>(vocab.Integer(token, kMaxTokenId));
      item.Fail(absl::StrCat("needs ", ReadableName(token), ", which is not in model.vocab"));
      return 0;
    };
    if (!fields.ok()) break;
    merges.push_back({id(left), id(right), id(left + right.substr(prefix.size()))});
  }
  return merges;
}

bool ReadFlag(const JsonFields& fields, absl::string_view key) {
  return fields.Has(key) && fields.Bool(key);
}

std::string ReadAffix(const JsonFields& fields, absl::string_view key) {
  return fields.Has(key) ? fields.String(key) : std::string();
}

}  // namespace

ModelPart ReadBpe(const JsonFields& fields) {
  BpeConfig config;
  if (fields.Has("dropout") && fields.Number("dropout") != 0) {
    fields.Fail(absl::UnimplementedError(
        absl::StrCat(fields.PathOf("dropout"), " is not supported: ids must not be random")));
  }
  config.continuing_subword_prefix = ReadAffix(fields, "continuing_subword_prefix");
  config.end_of_word_suffix = ReadAffix(fields, "end_of_word_suffix");
  config.fuse_unk = ReadFlag(fields, "fuse_unk");
  config.byte_fallback = ReadFlag(fields, "byte_fallback");
  config.ignore_merges = ReadFlag(fields, "ignore_merges");
  const JsonFields vocab = fields.Object("vocab");
  if (!fields.ok()) return {};
  if (fields.Has("unk_token")) {
    const std::string unk = fields.String("unk_token");
    if (!vocab.Has(unk)) fields.Fail("unk_token", "is not in model.vocab");
    config.unk_id = static_cast<int32_t>(vocab.Integer(unk, kMaxTokenId));
  }
  config.vocabulary = ReadVocabulary(vocab);
  if (!fields.ok()) return {};
  config.merges = ReadMerges(fields, vocab, config.continuing_subword_prefix);
  if (!fields.ok()) return {};
  std::vector<VocabularyEntry> vocabulary = config.vocabulary;
  return {std::make_unique<Bpe>(std::move(config)), std::move(vocabulary)};
}

}  // namespace attendant
