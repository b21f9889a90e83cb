// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer_json.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "server/text/json_fields.h"

namespace attendant {
namespace {

constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max() - 1;
constexpr size_t kMaxVocabularyBytes = size_t{16} << 20;  // 120,000 real words have 1 MiB
constexpr JsonLimits kLimits = {.max_bytes = kMaxTokenizerFileBytes,
                                .max_depth = 64};  // a real file has 6

absl::Status Unsupported(absl::string_view part, absl::string_view found,
                         absl::string_view supported) {
  return absl::UnimplementedError(
      absl::StrCat(part, " '", found, "' is not supported; ", supported, " is"));
}

// Where the part `key` is a "Sequence" of parts, listed in `list`, with one entry: that entry.
JsonFields UnwrapPart(const JsonFields& file, const std::string& key, const std::string& list) {
  const JsonFields part = file.Object(key);
  if (!part.Has("type") || part.String("type") != "Sequence") return part;
  const std::vector<JsonFields> parts = part.Objects(list);
  return parts.size() == 1 ? parts[0] : part;
}

// A file without a normalizer leaves the text as it is.
NormalizerConfig ReadNormalizer(const JsonFields& file) {
  if (!file.Has("normalizer")) return {};
  const JsonFields fields = UnwrapPart(file, "normalizer", "normalizers");
  const std::string type = fields.String("type");
  if (type != "BertNormalizer") {
    fields.Fail(Unsupported("normalizer type", type, "BertNormalizer"));
    return {};
  }
  NormalizerConfig config;
  config.clean_text = fields.Bool("clean_text");
  config.handle_chinese_chars = fields.Bool("handle_chinese_chars");
  config.lowercase = fields.Bool("lowercase");
  config.strip_accents =
      fields.Has("strip_accents") ? fields.Bool("strip_accents") : config.lowercase;
  return config;
}

void CheckPreTokenizer(const JsonFields& file) {
  if (!file.Has("pre_tokenizer")) {
    return file.Fail(Unsupported("pre_tokenizer", "null", "BertPreTokenizer"));
  }
  const JsonFields fields = UnwrapPart(file, "pre_tokenizer", "pretokenizers");
  const std::string type = fields.String("type");
  if (type == "BertPreTokenizer") return;
  fields.Fail(Unsupported("pre_tokenizer type", type, "BertPreTokenizer"));
}

std::vector<VocabularyEntry> ReadVocabulary(const JsonFields& vocab) {
  std::vector<VocabularyEntry> vocabulary;
  std::unordered_set<int32_t> ids;
  size_t bytes = 0;
  for (const std::string& token : vocab.Keys()) {
    if (!vocab.ok()) break;
    vocabulary.push_back({token, static_cast<int32_t>(vocab.Integer(token, kMaxId))});
    if (!ids.insert(vocabulary.back().id).second) vocab.Fail(token, "has another token's id");
    bytes += token.size();
  }
  if (bytes > kMaxVocabularyBytes) {
    vocab.Fail(absl::InvalidArgumentError(absl::StrCat(
        "model.vocab has ", bytes, " bytes of tokens, the limit is ", kMaxVocabularyBytes)));
  }
  return vocabulary;
}

// The files of the format's first year give their model no type.
WordPieceConfig ReadModel(const JsonFields& fields) {
  const bool untyped = !fields.Has("type") && fields.Has("max_input_chars_per_word");
  const std::string type = untyped ? "WordPiece" : fields.String("type");
  if (type != "WordPiece") {
    fields.Fail(Unsupported("model type", type, "WordPiece"));
    return {};
  }
  WordPieceConfig config;
  const std::string unk_token = fields.String("unk_token");
  config.continuing_subword_prefix = fields.String("continuing_subword_prefix");
  config.max_input_chars_per_word =
      fields.Integer("max_input_chars_per_word", std::numeric_limits<int64_t>::max());
  const JsonFields vocab = fields.Object("vocab");
  if (!fields.ok()) return {};
  if (!vocab.Has(unk_token)) fields.Fail("unk_token", "is not in model.vocab");
  config.unk_id = static_cast<int32_t>(vocab.Integer(unk_token, kMaxId));
  config.vocabulary = ReadVocabulary(vocab);
  return config;
}

AddedToken ReadAddedToken(const JsonFields& fields) {
  AddedToken token;
  token.content = fields.String("content");
  token.id = static_cast<int32_t>(fields.Integer("id", kMaxId));
  token.single_word = fields.Bool("single_word");
  token.lstrip = fields.Bool("lstrip");
  token.rstrip = fields.Bool("rstrip");
  token.normalized = fields.Bool("normalized");
  return token;
}

// The library ignores the file's ids: a token has the vocabulary's, else the next after all others.
// A file that says something else is ambiguous, so it is refused.
std::vector<AddedToken> ReadAddedTokens(const JsonFields& file, const JsonFields& vocab) {
  std::vector<AddedToken> tokens;
  if (!file.Has("added_tokens")) return tokens;
  auto next_id = static_cast<int64_t>(vocab.Keys().size());
  for (const JsonFields& fields : file.Objects("added_tokens")) {
    if (!file.ok()) break;
    tokens.push_back(ReadAddedToken(fields));
    const AddedToken& token = tokens.back();
    const bool known = vocab.Has(token.content);
    const int64_t id = known ? vocab.Integer(token.content, kMaxId) : next_id++;
    if (token.id == id) continue;
    fields.Fail("id", absl::StrCat("is ", token.id, ", but '", token.content, "' has the id ", id,
                                   known ? " in model.vocab" : " as the next after model.vocab"));
  }
  return tokens;
}

int64_t CountIds(const TokenizerConfig& config) {
  int64_t largest = -1;
  const auto add = [&](int32_t id) { largest = std::max<int64_t>(largest, id); };
  for (const VocabularyEntry& entry : config.model.vocabulary) add(entry.id);
  for (const AddedToken& token : config.added_tokens) add(token.id);
  for (const SpecialToken& special : config.sequence.before) add(special.id);
  for (const SpecialToken& special : config.sequence.after) add(special.id);
  return largest + 1;
}

TokenizerConfig ReadConfig(const JsonFields& file) {
  TokenizerConfig config;
  if (file.Has("version") && file.String("version") != "1.0") {
    file.Fail(Unsupported("version", file.String("version"), "1.0"));
  }
  const JsonFields model = file.Object("model");
  config.model = ReadModel(model);
  config.normalizer = ReadNormalizer(file);
  CheckPreTokenizer(file);
  config.sequence = ReadSequenceTemplate(file, kMaxId);
  if (!file.ok()) return {};
  config.added_tokens = ReadAddedTokens(file, model.Object("vocab"));
  config.vocab = CountIds(config);
  return config;
}

}  // namespace

absl::StatusOr<TokenizerConfig> ParseTokenizerJson(absl::string_view contents) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode file, ParseJson(contents, "the file", kLimits));
  absl::Status status;
  TokenizerConfig config = ReadConfig(JsonFields(file, status));
  ATTENDANT_RETURN_IF_ERROR(status);
  return config;
}

}  // namespace attendant
