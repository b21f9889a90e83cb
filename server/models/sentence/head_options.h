// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/heads/head.h"
#include "kernels/heads/token_head.h"
#include "kernels/io/json_folder.h"
#include "server/models/sentence/model_folder.h"
#include "server/text/tokenizer.h"

namespace attendant {

// Fills in what the files beside the checkpoint say of a head. False: the folder has no use for it.
// Without a tokenizer (null) a masked language model has no mask token, and BGE-M3 the special
// tokens of XLM-R. INVALID_ARGUMENT and UNIMPLEMENTED name the file and the field.
absl::StatusOr<bool> ReadHeadOptions(const ModelFolder& folder, const Tokenizer* tokenizer,
                                     TokenHead& head);

// The ids of those of `words` that are tokens, ascending.
std::vector<int32_t> FindIds(const Tokenizer& tokenizer, std::span<const std::string> words);

// The mask token of tokenizer_config.json, else [MASK] or <mask>; unset without a tokenizer and
// where there is none. INVALID_ARGUMENT for a file that is not valid.
absl::StatusOr<std::optional<int32_t>> FindMask(const JsonFolder& folder,
                                                const Tokenizer* tokenizer);

// The tasks of a head with these options.
std::vector<TaskKind> TasksOf(const TokenHead& head);
// True if one of the heads makes `task`.
bool AnyMakes(std::span<const TokenHead> heads, TaskKind task);

}  // namespace attendant
