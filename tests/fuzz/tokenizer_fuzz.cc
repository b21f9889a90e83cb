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

void CheckOffsets(const Tokenizer& tokenizer, absl::string_view text, const TokenizedText& plain,
                  int64_t max_tokens) {
  for (const OffsetUnit unit : {OffsetUnit::kCharacters, OffsetUnit::kBytes}) {
    const absl::StatusOr<TokenizedText> tokens =
        tokenizer.Tokenize(text, {.max_tokens = max_tokens, .offsets = unit});
    ATTENDANT_CHECK(tokens.ok() && tokens->token_ids == plain.token_ids);
    ATTENDANT_CHECK(tokens->offsets.size() == tokens->token_ids.size());
    for (const TokenOffset& offset : tokens->offsets) {
      ATTENDANT_CHECK(offset.begin <= offset.end);
    }
  }
}

void Tokenize(absl::string_view text, absl::string_view json) {
  static const auto& directory = *new TempDirectory;
  WriteFile(directory / "tokenizer.json", std::string(json));
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(directory.path());
  if (!tokenizer.ok()) return;
  for (int64_t max_tokens : {0, 3, 512}) {
    const absl::StatusOr<TokenizedText> tokens =
        (*tokenizer)->Tokenize(text, {.max_tokens = max_tokens});
    if (!tokens.ok()) continue;
    CheckOffsets(**tokenizer, text, *tokens, max_tokens);
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
