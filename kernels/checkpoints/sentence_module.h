// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/heads/sentence_head.h"
#include "kernels/io/json_folder.h"

namespace attendant {

// The class of a module, by its Python type: the last word of one of sentence-transformers or
// PyLate, which have moved their classes from version to version. "custom_st.Transformer", of Jina
// v3's folder, is taken for a Transformer in any folder: a module that only runs the encoder. Other
// code may compute anything: its type is the class.
absl::string_view ModuleClass(absl::string_view type);

// Of modules.json.
inline constexpr size_t kMaxModules = 32;

// True if module `index` of modules.json exists and has the class `name`. INVALID_ARGUMENT unless
// it is a list of modules with types.
absl::StatusOr<bool> IsModule(const JsonNode& modules, size_t index, absl::string_view name);

// INVALID_ARGUMENT where `path`, the folder of a module of modules.json, leaves the checkpoint's.
absl::Status CheckModulePath(const JsonNode& module, absl::string_view path);

// True if the chain of modules.json is a Transformer and a LogitScore. INVALID_ARGUMENT for a file
// that is not valid.
absl::StatusOr<bool> IsLogitScoreChain(const JsonNode& modules);
// The config.json of the LogitScore in such a folder; nullopt for other folders.
absl::StatusOr<std::optional<JsonNode>> ReadLogitScore(const JsonFolder& folder);

// The input of a module: the embedding of the sentence, or the embeddings of its tokens. PyLate
// saves the first name for both: a Dense on tokens may have it too.
enum class ModuleInput : uint8_t { kSentence, kTokens };

// Modules that sentence-transformers saves in folders of their own: config.json, and weights as
// safetensors. They take vectors of `width` values. NOT_FOUND without one of the files;
// INVALID_ARGUMENT, naming the file and the field or tensor, for what is missing or contradicts
// `width`, and for tensors that the config has no place for; UNIMPLEMENTED for an option or an
// activation that is not computed.
absl::StatusOr<SentenceHead::Dense> ReadDense(const JsonFolder& folder, int64_t width,
                                              ModuleInput input = ModuleInput::kSentence);
absl::StatusOr<HeadNorm> ReadHeadNorm(const JsonFolder& folder, int64_t width);

// A check that they share with Normalize, whose config.json may be absent: OK when the module takes
// and gives the embedding of the sentence, UNIMPLEMENTED for another feature.
absl::Status CheckFeatures(const JsonFolder& folder);
// Checks the folder of a Normalize that works on tokens: its config.json must say so.
absl::Status CheckTokenFeatures(const JsonFolder& folder);

}  // namespace attendant
