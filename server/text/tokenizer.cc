// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "server/text/esm/esm_vocabulary.h"
#include "server/text/pipeline.h"
#include "server/text/sentencepiece/convert.h"
#include "server/text/tokenizer_config.h"
#include "server/text/tokenizer_json.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// `path` stands in the errors.
absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizer(const std::string& path,
                                                          absl::string_view contents,
                                                          const TokenizerSettings& settings) {
  absl::StatusOr<TokenizerParts> parts = ParseTokenizerJson(contents, settings);
  absl::Status status = parts.status();
  if (parts.ok()) {
    absl::StatusOr<std::unique_ptr<TokenizerPipeline>> tokenizer =
        TokenizerPipeline::Create(*std::move(parts));
    if (tokenizer.ok()) return *std::move(tokenizer);
    status = tokenizer.status();
  }
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

// Of a folder whose class is ESM's: made of `path`.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeEsm(const std::string& path,
                                                   TokenizerSettings settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string vocabulary,
                             ReadTextFile(path, kMaxTokenizerFileBytes));
  const absl::StatusOr<std::string> json =
      EsmTokenizerJson(vocabulary, *settings.esm, settings.named_tokens);
  if (!json.ok()) {
    return absl::Status(json.status().code(), absl::StrCat(path, ": ", json.status().message()));
  }
  settings.named_tokens.clear();  // the conversion has them
  return ParseTokenizer(path, *json, settings);
}

}  // namespace

std::string TextAt(absl::string_view text, TokenOffset offset) {
  std::string bytes;
  AppendWellFormed(text.substr(offset.begin, offset.end - offset.begin), bytes);
  return bytes;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const JsonFolder& folder,
                                                         bool lowercases) {
  const std::string vocabulary = absl::StrCat(folder.path(), "/vocab.txt");
  absl::StatusOr<TokenizerSettings> settings = ReadTokenizerSettings(folder);
  if (settings.ok()) settings->lowercases = lowercases;
  ATTENDANT_ASSIGN_OR_RETURN(const bool has_vocabulary, IsFile(vocabulary));
  if (has_vocabulary) {
    ATTENDANT_RETURN_IF_ERROR(settings);
    if (settings->esm.has_value()) return MakeEsm(vocabulary, *std::move(settings));
  }
  const std::string path = absl::StrCat(folder.path(), "/tokenizer.json");
  absl::StatusOr<std::string> contents = ReadTextFile(path, kMaxTokenizerFileBytes);
  const auto parse = [&](const std::string& file,
                         absl::string_view json) -> absl::StatusOr<std::unique_ptr<Tokenizer>> {
    ATTENDANT_RETURN_IF_ERROR(settings);
    if (file != path) settings->named_tokens.clear();  // the conversion has them
    return ParseTokenizer(file, json, *settings);
  };
  if (!absl::IsNotFound(contents.status())) {
    ATTENDANT_RETURN_IF_ERROR(contents);
    return parse(path, *contents);
  }
  const absl::StatusOr<ConvertedTokenizer> converted =
      ConvertSentencePiece(folder, kSentencePieceFiles);
  if (absl::IsNotFound(converted.status())) return contents.status();
  ATTENDANT_RETURN_IF_ERROR(converted);
  return parse(converted->path, converted->json);
}

}  // namespace attendant
