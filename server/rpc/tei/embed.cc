// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/embed.h"

#include <cstddef>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/requests/tasks.h"
#include "server/text/unicode/utf8.h"

namespace attendant::tei {
namespace {

// The fields that the three requests for embeddings have in common.
template <typename Request>
absl::Status TextFromProto(const Request& request, EncodeInput& input) {
  ATTENDANT_ASSIGN_OR_RETURN(
      input.truncation, TruncationFromProto(request.truncate(), request.truncation_direction()));
  if (request.has_prompt_name()) input.prompt_name = request.prompt_name();
  if (request.inputs().empty()) return absl::InvalidArgumentError("inputs is empty");
  input.sequences.emplace_back(request.inputs());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EncodeInput> EmbedRun::FromMessage() {
  const v1::EmbedRequest& message = request();
  AddCharacters(CountCharacters(message.inputs()));
  EncodeInput input;
  input.pooled = true;
  input.normalize = !message.has_normalize() || message.normalize();
  ATTENDANT_RETURN_IF_ERROR(TextFromProto(message, input));
  if (message.has_dimensions()) {
    if (message.dimensions() == 0) {
      return absl::InvalidArgumentError("dimensions is 0, the minimum is 1");
    }
    input.dims = message.dimensions();
  }
  return input;
}

void EmbedRun::Fill(EncodeOutput& output, v1::EmbedResponse& response) {
  const std::vector<float>& pooled = output.sequences[0].result.pooled;
  response.mutable_embeddings()->Add(pooled.begin(), pooled.end());
}

absl::StatusOr<EncodeInput> EmbedAllRun::FromMessage() {
  AddCharacters(CountCharacters(request().inputs()));
  EncodeInput input;
  input.last_hidden_state = true;
  ATTENDANT_RETURN_IF_ERROR(TextFromProto(request(), input));
  return input;
}

void EmbedAllRun::Fill(EncodeOutput& output, v1::EmbedAllResponse& response) {
  const auto hidden = static_cast<size_t>(output.hidden);
  const std::span<const float> states = output.sequences[0].result.last_hidden_state;
  for (size_t i = 0; i < states.size(); i += hidden) {
    const std::span<const float> row = states.subspan(i, hidden);
    response.add_token_embeddings()->mutable_embeddings()->Add(row.begin(), row.end());
  }
}

absl::StatusOr<EncodeInput> EmbedSparseRun::FromMessage() {
  AddCharacters(CountCharacters(request().inputs()));
  EncodeInput input;
  input.tasks.push_back({.kind = TaskKind::kSparse});
  ATTENDANT_RETURN_IF_ERROR(TextFromProto(request(), input));
  return input;
}

void EmbedSparseRun::Fill(EncodeOutput& output, v1::EmbedSparseResponse& response) {
  const HeadResult& result = output.sequences[0].result.tasks[FindTask(output, TaskKind::kSparse)];
  for (size_t i = 0; i < result.indices.size(); ++i) {
    v1::SparseValue& value = *response.add_sparse_embeddings();
    value.set_index(static_cast<uint32_t>(result.indices[i]));
    value.set_value(result.values[i]);
  }
}

// A SparseValue in memory, of 8 bytes in the output.
int64_t EmbedSparseRun::TextBytes(const EncodeOutput& output) const {
  constexpr int64_t kValueBytes = 40;
  return output.response_bytes / 8 * (kValueBytes - 8);
}

EmbedService::EmbedService(const Dependencies& dependencies)
    : RawService(dependencies.encode.requests.gate, dependencies.encode.requests.budgets),
      embed_(dependencies, Method::kTeiEmbed, Embeds),
      embed_all_(dependencies, Method::kTeiEmbedAll, Embeds),
      embed_sparse_(dependencies, Method::kTeiEmbedSparse, EmbedsSparsely) {
  ServeRequests("Embed", "EmbedStream", embed_);
  ServeRequests("EmbedAll", "EmbedAllStream", embed_all_);
  ServeRequests("EmbedSparse", "EmbedSparseStream", embed_sparse_);
}

}  // namespace attendant::tei
