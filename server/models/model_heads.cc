// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_heads.h"

#include "absl/status/status.h"
#include "kernels/backends/heads.h"
#include "kernels/core/status_macros.h"
#include "server/batching/runners/batch_runner.h"
#include "server/models/sentence/head_options.h"

namespace attendant {

std::optional<size_t> ModelHeads::Find(TaskKind kind) const {
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i]->Makes(kind)) return i;
  }
  return std::nullopt;
}

std::array<std::optional<int64_t>, kNumTaskKinds> ModelHeads::Columns() const {
  std::array<std::optional<int64_t>, kNumTaskKinds> columns{};
  for (int i = 0; i < kNumTaskKinds; ++i) {
    const auto kind = static_cast<TaskKind>(i);
    const std::optional<size_t> head = Find(kind);
    if (!head.has_value()) continue;
    columns[static_cast<size_t>(i)] = heads[*head]->MaxResult({.kind = kind}, {}).columns;
  }
  return columns;
}

int64_t ModelHeads::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto& head : heads) bytes += head->weight_bytes();
  return bytes;
}

absl::StatusOr<ModelHeads> MakeModelHeads(const ModelFolder& folder,
                                          std::vector<TokenHead> token_heads,
                                          const std::vector<UnreadHead>& unread,
                                          const Tokenizer* tokenizer,
                                          const PreparedEncoder& encoder) {
  ModelHeads made;
  for (TokenHead& head : token_heads) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool used, ReadHeadOptions(folder, tokenizer, head));
    if (!used) continue;
    ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<Head> packed, MakeHead(head, encoder));
    made.heads.push_back(std::move(packed));
    made.splade |= head.options.splade.has_value();
    if (head.kind == TokenHeadKind::kTokenLabels) made.token_labels = std::move(head.labels);
  }
  for (const UnreadHead& head : unread) {
    const bool weights = head.kind == TokenHeadKind::kTokenWeights;
    made.left_out.emplace_back(weights ? TaskKind::kSparse : TaskKind::kMultiVector, head.reason);
  }
  return made;
}

absl::StatusOr<std::vector<std::unique_ptr<HeadRunner>>> MakeHeadRunners(
    const ModelHeads& heads, const SessionLimits& limits, Session& session) {
  std::vector<std::unique_ptr<HeadRunner>> runners;
  for (const auto& head : heads.heads) {
    ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<HeadRunner> runner,
                               head->NewRunner(limits, BatchRunner::HeadThreads(session)));
    runners.push_back(std::move(runner));
  }
  return runners;
}

}  // namespace attendant
