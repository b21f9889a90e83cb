// SPDX-License-Identifier: Apache-2.0
// A text, a byte 0, and the tokenizer.json that it is tokenized with.
#include <string>

#include "absl/strings/string_view.h"
#include "kernels/core/check.h"
#include "server/text/tokenizer.h"
#include "tests/fuzz/harness.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

void Tokenize(absl::string_view text, absl::string_view json) {
  static const auto& directory = *new TempDirectory;
  WriteFile(directory / "tokenizer.json", std::string(json));
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(directory.path());
  if (!tokenizer.ok()) return;
  for (int64_t max_tokens : {0, 3, 512}) {
    const absl::StatusOr<TokenizedText> tokens =
        (*tokenizer)->Tokenize(text, {.max_tokens = max_tokens});
    if (!tokens.ok()) continue;
    ATTENDANT_CHECK(static_cast<int64_t>(tokens->token_ids.size()) <= max_tokens);
    ATTENDANT_CHECK(tokens->segment_ids.size() == tokens->token_ids.size());
    for (int32_t id : tokens->token_ids) {
      ATTENDANT_CHECK(id >= 0 && id < (*tokenizer)->vocab());
    }
  }
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  if (end != absl::string_view::npos) {
    attendant::Tokenize(input.substr(0, end), input.substr(end + 1));
  }
  return 0;
}
