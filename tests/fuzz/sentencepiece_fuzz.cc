// SPDX-License-Identifier: Apache-2.0
// The number of a family, a text, a byte 0, and the sentencepiece model that it is tokenized with.
#include <iterator>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/core/check.h"
#include "server/text/tokenizer.h"
#include "tests/fuzz/harness.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

constexpr const char* kFamilies[] = {"XLMRobertaTokenizer", "CamembertTokenizer", "T5Tokenizer",
                                     "DebertaV2Tokenizer"};

void TokenizeWith(size_t family, absl::string_view text, absl::string_view model) {
  static const auto& directory = *new TempDirectory;
  WriteFile(
      directory / "tokenizer_config.json",
      absl::StrCat(R"({"tokenizer_class": ")", kFamilies[family % std::size(kFamilies)], "\"}"));
  WriteFile(directory / "spm.model", std::string(model));
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(directory.path());
  if (!tokenizer.ok()) {
    ATTENDANT_CHECK(!absl::IsNotFound(tokenizer.status()));
    return;
  }
  const absl::StatusOr<TokenizedText> tokens = (*tokenizer)->Tokenize(text, {.max_tokens = 512});
  if (!tokens.ok()) return;
  for (const int32_t id : tokens->token_ids) {
    ATTENDANT_CHECK(id >= 0 && id < (*tokenizer)->vocab());
  }
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0', 1);
  if (size > 1 && end != absl::string_view::npos) {
    attendant::TokenizeWith(static_cast<unsigned char>(input[0]), input.substr(1, end - 1),
                            input.substr(end + 1));
  }
  return 0;
}
