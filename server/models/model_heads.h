// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/core/session.h"
#include "kernels/heads/head.h"
#include "kernels/heads/token_head.h"
#include "server/models/sentence/model_folder.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The heads on tokens of a model.
struct ModelHeads {
  std::vector<std::unique_ptr<const Head>> heads;
  std::vector<int64_t> row_ns;            // [heads], of a token or a mask (MeasureHeads)
  std::vector<std::string> token_labels;  // of kTokenScores
  bool splade = false;  // kSparse comes from a masked language model: the output it is trained for
  // Why an output is not made that the folder could have.
  std::vector<std::pair<TaskKind, std::string>> left_out;

  // The place of the head that makes `kind`.
  std::optional<size_t> Find(TaskKind kind) const;
  // By TaskKind: the columns of a row of the head's result with default options; unset: no such
  // head.
  std::array<std::optional<int64_t>, kNumTaskKinds> Columns() const;
  int64_t weight_bytes() const;
};

// Makes the heads that the checkpoint in `folder` has. A masked language model makes sparse
// vectors as modules.json's SpladePooling says, or as SPLADE v2 does where there is no
// modules.json. It has no head where modules.json makes an embedding of the encoder's states. Its
// mask token is the one of tokenizer_config.json, else [MASK] or <mask>; without a tokenizer it
// has none. The special tokens that BGE-M3 gives no weight are those of tokenizer_config.json.
// INVALID_ARGUMENT and UNIMPLEMENTED name the file and the field; else MakeHead's errors.
absl::StatusOr<ModelHeads> MakeModelHeads(const ModelFolder& folder,
                                          std::vector<TokenHead> token_heads,
                                          const std::vector<UnreadHead>& unread,
                                          const Tokenizer* tokenizer,
                                          const PreparedEncoder& encoder);

// A runner of each head, on the session's threads.
absl::StatusOr<std::vector<std::unique_ptr<HeadRunner>>> MakeHeadRunners(
    const ModelHeads& heads, const SessionLimits& limits, Session& session);

}  // namespace attendant
