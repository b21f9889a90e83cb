// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <utility>

#include "server/rpc/attention/plan_parts.h"

namespace attendant {
namespace {

// One of multi_head's tensors, and where its values go.
struct Field {
  const char* name;
  bool present;
  const v1::Tensor& tensor;
  bool is_bias;
  LinearWeights& linear;
};

std::array<Field, 8> Fields(const v1::MultiHeadAttention& kind, MultiHeadWeights& to) {
  return {{
      {"multi_head.query_weight", true, kind.query_weight(), false, to.query},
      {"multi_head.key_weight", true, kind.key_weight(), false, to.key},
      {"multi_head.value_weight", true, kind.value_weight(), false, to.value},
      {"multi_head.output_weight", true, kind.output_weight(), false, to.output},
      {"multi_head.query_bias", kind.has_query_bias(), kind.query_bias(), true, to.query},
      {"multi_head.key_bias", kind.has_key_bias(), kind.key_bias(), true, to.key},
      {"multi_head.value_bias", kind.has_value_bias(), kind.value_bias(), true, to.value},
      {"multi_head.output_bias", kind.has_output_bias(), kind.output_bias(), true, to.output},
  }};
}

absl::StatusOr<WireTensor> Read(const Field& field) {
  absl::StatusOr<WireTensor> read = ReadNumbers(field.name, field.tensor, kMaxTensorRank);
  if (!read.ok()) return read;
  const int64_t rank = field.is_bias ? 1 : 2;
  if (read->rank() == rank) return read;
  return InvalidAttend(field.name, ": shape is ", ShapeText(read->shape), ", it must have ", rank,
                       rank == 1 ? " dim" : " dims");
}

absl::Status InMultiHead(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("multi_head: ", status.message()));
}

}  // namespace

absl::Status PlanMultiHead(const v1::AttendRequest& request, AttentionTask& task) {
  task.own_config = {.type = ModuleType::kMultiHead,
                     .heads = request.multi_head().heads(),
                     .hidden = task.call.query.dim,
                     .key_dim = task.call.key.dim,
                     .value_dim = task.call.value.dim};
  if (absl::Status s = Validate(task.own_config); !s.ok()) return InMultiHead(s);
  MultiHeadWeights unused;
  for (const Field& field : Fields(request.multi_head(), unused)) {
    if (!field.present) continue;
    absl::StatusOr<WireTensor> read = Read(field);
    if (!read.ok()) return read.status();
    // As they are read, and packed.
    task.operand_bytes += read->count * static_cast<int64_t>(sizeof(float));
    task.operand_bytes += read->count * attention::ValueBytes(task.call.dtype);
  }
  task.call.kind = attention::Kind::kMultiHead;
  return SplitHeads(task.own_config.heads, task);
}

absl::Status PackMultiHead(const v1::MultiHeadAttention& kind, AttentionTask& task) {
  const auto storage = std::make_shared<std::vector<std::vector<float>>>();
  ModuleWeights weights;
  weights.storage = storage;
  for (const Field& field : Fields(kind, weights.attention)) {
    if (!field.present) continue;
    absl::StatusOr<WireTensor> read = Read(field);
    if (!read.ok()) return read.status();
    std::vector<float>& values = storage->emplace_back(static_cast<size_t>(read->count));
    read->ReadFloats(values.data());
    if (field.is_bias) {
      field.linear.bias = {values.data(), {read->count}};
    } else {
      field.linear.weight = {values.data(), {read->dim(0), read->dim(1)}};
    }
  }
  absl::StatusOr<std::unique_ptr<const attention::Module>> module =
      attention::MakeModule(task.own_config, std::move(weights), task.call.dtype);
  if (!module.ok()) return InMultiHead(module.status());
  task.own_module = *std::move(module);
  task.call.module = task.own_module.get();
  return absl::OkStatus();
}

absl::Status SplitHeads(int64_t heads, AttentionTask& task) {
  task.module_heads = heads;
  if (!task.with_heads) return absl::OkStatus();
  return InvalidAttend("query has heads, which this kind makes itself: send ",
                       task.call.queries.packed() ? "[sum of query_lengths, query_dim]"
                                                  : "[batch, query_len, query_dim]");
}

}  // namespace attendant
