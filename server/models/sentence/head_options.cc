// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/head_options.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "server/models/sentence/late_interaction.h"
#include "server/models/sentence/splade_modules.h"
#include "server/text/base/literals.h"

namespace attendant {
namespace {

std::optional<int32_t> FindId(const Tokenizer& tokenizer, absl::string_view token) {
  for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
    if (tokenizer.TokenString(id) == token) return id;
  }
  return std::nullopt;
}

// A token of tokenizer_config.json; empty: not there.
absl::StatusOr<std::string> ReadToken(const JsonFolder& folder, absl::string_view field) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.ReadOrEmpty("tokenizer_config.json"));
  std::optional<std::string> token;
  ATTENDANT_RETURN_IF_ERROR(ReadTokenText(config, field, token));
  return token.value_or("");
}

// The ids that have no weight in BGE-M3's sparse vectors, ascending: those of XLM-R where the
// folder does not say.
absl::StatusOr<std::vector<int32_t>> FindIgnored(const JsonFolder& folder,
                                                 const Tokenizer* tokenizer) {
  constexpr std::pair<absl::string_view, absl::string_view> kTokens[] = {
      {"cls_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}, {"unk_token", "<unk>"}};
  if (tokenizer == nullptr) return std::vector<int32_t>{0, 1, 2, 3};
  std::vector<int32_t> ids;
  for (const auto& [field, otherwise] : kTokens) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string token, ReadToken(folder, field));
    const std::optional<int32_t> id =
        FindId(*tokenizer, token.empty() ? otherwise : absl::string_view(token));
    if (id.has_value()) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

std::vector<int32_t> FindIds(const Tokenizer& tokenizer, std::span<const std::string> words) {
  const absl::flat_hash_set<absl::string_view> wanted(words.begin(), words.end());
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
    const absl::string_view token = tokenizer.TokenString(id);
    if (!token.empty() && wanted.contains(token)) ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<std::optional<int32_t>> FindMask(const JsonFolder& folder,
                                                const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return std::nullopt;
  ATTENDANT_ASSIGN_OR_RETURN(const std::string token, ReadToken(folder, "mask_token"));
  if (!token.empty()) return FindId(*tokenizer, token);
  const std::optional<int32_t> id = FindId(*tokenizer, "[MASK]");
  return id.has_value() ? id : FindId(*tokenizer, "<mask>");
}

absl::StatusOr<bool> ReadHeadOptions(const ModelFolder& folder, const Tokenizer* tokenizer,
                                     TokenHead& head) {
  if (head.kind == TokenHeadKind::kTokenWeights) {
    ATTENDANT_ASSIGN_OR_RETURN(head.options.ignored_ids, FindIgnored(folder.encoder, tokenizer));
  }
  if (head.options.late_interaction && tokenizer != nullptr) {
    ATTENDANT_ASSIGN_OR_RETURN(const LateInteraction late, ReadLateInteraction(folder.root));
    head.options.ignored_ids = FindSkipped(late, *tokenizer);
  }
  if (head.kind != TokenHeadKind::kMaskedLm) return true;
  ATTENDANT_ASSIGN_OR_RETURN(head.options.splade, FindSplade(folder));
  if (!head.options.splade.has_value()) return false;
  ATTENDANT_ASSIGN_OR_RETURN(head.options.mask_id, FindMask(folder.encoder, tokenizer));
  return true;
}

std::vector<TaskKind> TasksOf(const TokenHead& head) {
  switch (head.kind) {
    case TokenHeadKind::kTokenLabels:
      return {TaskKind::kTokenScores};
    case TokenHeadKind::kTokenWeights:
      return {TaskKind::kSparse};
    case TokenHeadKind::kVectors:
      return {TaskKind::kMultiVector};
    case TokenHeadKind::kMaskedLm:
      break;
  }
  std::vector<TaskKind> tasks;
  if (head.options.splade.has_value()) tasks.push_back(TaskKind::kSparse);
  if (head.options.mask_id.has_value()) tasks.push_back(TaskKind::kFillMask);
  return tasks;
}

bool AnyMakes(std::span<const TokenHead> heads, TaskKind task) {
  return std::any_of(heads.begin(), heads.end(), [task](const TokenHead& head) {
    const std::vector<TaskKind> tasks = TasksOf(head);
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  });
}

}  // namespace attendant
