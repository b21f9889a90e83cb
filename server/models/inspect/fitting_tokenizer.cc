// SPDX-License-Identifier: Apache-2.0
#include "server/models/inspect/fitting_tokenizer.h"

#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/packed_batch.h"
#include "kernels/core/status_macros.h"

namespace attendant {

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFittingTokenizer(const JsonFolder& folder,
                                                                const EncoderConfig& config,
                                                                const SentenceSettings& settings) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(folder, settings.lowercases);
  if (absl::IsNotFound(tokenizer.status())) return nullptr;
  if (!tokenizer.ok()) return tokenizer;
  if ((*tokenizer)->vocab() > config.vocab) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.path(), ": the tokenizer gives ids up to ", (*tokenizer)->vocab() - 1,
                     ", config.json's vocab_size is ", config.vocab));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const TokenizedText text,
      (*tokenizer)->Tokenize("warm-up", {.max_tokens = settings.max_text_tokens}));
  std::vector<int32_t> positions(text.token_ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  const absl::Status fits = ValidateSequence(config, text.token_ids, positions, text.segment_ids);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.path(), ": the tokenizer does not fit config.json: ", fits.message()));
  }
  return tokenizer;
}

}  // namespace attendant
