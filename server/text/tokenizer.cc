// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "server/text/pipeline.h"
#include "server/text/tokenizer_json.h"

namespace attendant {
namespace {

absl::StatusOr<std::unique_ptr<TokenizerPipeline>> ParseTokenizer(absl::string_view contents) {
  ATTENDANT_ASSIGN_OR_RETURN(TokenizerParts parts, ParseTokenizerJson(contents));
  return TokenizerPipeline::Create(std::move(parts));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/tokenizer.json");
  ATTENDANT_ASSIGN_OR_RETURN(const std::string contents,
                             ReadTextFile(path, kMaxTokenizerFileBytes));
  absl::StatusOr<std::unique_ptr<TokenizerPipeline>> tokenizer = ParseTokenizer(contents);
  if (tokenizer.ok()) return *std::move(tokenizer);
  return absl::Status(tokenizer.status().code(),
                      absl::StrCat(path, ": ", tokenizer.status().message()));
}

}  // namespace attendant
