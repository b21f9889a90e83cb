// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/session.h"

#include "absl/strings/str_cat.h"

namespace attendant {

absl::Status CheckSessionLimits(const PackedBatch& batch, const OutputSpec& spec,
                                const SessionLimits& limits) {
  if (batch.tokens() > limits.max_batch_tokens || batch.batch() > limits.max_batch_sequences) {
    return absl::InvalidArgumentError(absl::StrCat("the batch has ", batch.tokens(), " tokens in ",
                                                   batch.batch(), " sequences, the session takes ",
                                                   limits.max_batch_tokens, " tokens in ",
                                                   limits.max_batch_sequences, " sequences"));
  }
  if (static_cast<int64_t>(spec.sequences.size()) != batch.batch()) {
    return absl::InvalidArgumentError(absl::StrCat("outputs are given for ", spec.sequences.size(),
                                                   " sequences, the batch has ", batch.batch()));
  }
  if (!spec.layers.empty() && static_cast<int64_t>(spec.layers.size()) != batch.batch()) {
    return absl::InvalidArgumentError(absl::StrCat("layer outputs are given for ",
                                                   spec.layers.size(), " sequences, the batch has ",
                                                   batch.batch()));
  }
  return absl::OkStatus();
}

}  // namespace attendant
