// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/text/bert_tokenizer.h"
#include "server/text/tokenizer_json.h"

namespace attendant {
namespace {

// The largest known vocabularies, of any tokenizer type, have half of this.
constexpr uintmax_t kMaxFileBytes = uintmax_t{64} << 20;

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return absl::NotFoundError("no such file");
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (type != std::filesystem::file_type::regular || error) {
    return absl::InvalidArgumentError("not a readable file");
  }
  if (bytes > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file has ", bytes, " bytes, the limit is ", kMaxFileBytes));
  }
  std::string contents(static_cast<size_t>(bytes), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(contents.data(), static_cast<std::streamsize>(bytes));
  if (!file) return absl::InvalidArgumentError("the file cannot be read");
  return contents;
}

absl::StatusOr<std::unique_ptr<BertTokenizer>> LoadFile(const std::filesystem::path& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  ATTENDANT_ASSIGN_OR_RETURN(const TokenizerConfig config, ParseTokenizerJson(contents));
  return BertTokenizer::Create(config);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory) / "tokenizer.json";
  absl::StatusOr<std::unique_ptr<BertTokenizer>> tokenizer = LoadFile(path);
  if (tokenizer.ok()) return *std::move(tokenizer);
  return absl::Status(tokenizer.status().code(),
                      absl::StrCat(path.string(), ": ", tokenizer.status().message()));
}

}  // namespace attendant
