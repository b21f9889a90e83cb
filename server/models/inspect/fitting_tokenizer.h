// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/encoder_config.h"
#include "kernels/io/json_folder.h"
#include "server/models/sentence_settings.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The tokenizer of a checkpoint's folder; null when it has none. It is tried once: it
// cannot fail later for a reason that lies in the checkpoint. Errors are LoadTokenizer's, and
// INVALID_ARGUMENT when it gives ids or sequences that `config` does not allow.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFittingTokenizer(const JsonFolder& folder,
                                                                const EncoderConfig& config,
                                                                const SentenceSettings& settings);

}  // namespace attendant
