// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/attention/plan_operands.h"

#include <utility>

#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

using attention::InputRows;
using attention::Sequences;
using Lengths = google::protobuf::RepeatedField<int64_t>;

// The layout that all three operands have.
struct Layout {
  bool ragged = false;
  bool with_heads = false;
};

absl::StatusOr<Layout> ReadLayout(const v1::AttendRequest& request, const WireTensor& query) {
  const bool ragged = request.query_lengths_size() > 0;
  if (!ragged && request.key_lengths_size() > 0) {
    return InvalidAttend("key_lengths has ", request.key_lengths_size(),
                         " values, query_lengths none");
  }
  const int64_t plain_rank = ragged ? 2 : 3;
  if (query.rank() == plain_rank || query.rank() == plain_rank + 1) {
    return Layout{.ragged = ragged, .with_heads = query.rank() == plain_rank + 1};
  }
  return InvalidAttend("query: shape is ", ShapeText(query.shape), ", it must be ",
                       ragged ? "[sum of query_lengths, query_dim] or "
                                "[sum of query_lengths, heads, query_dim]"
                              : "[batch, query_len, query_dim] or "
                                "[batch, heads, query_len, query_dim]");
}

absl::Status CheckRank(absl::string_view field, const WireTensor& tensor, const WireTensor& query) {
  if (tensor.rank() == query.rank()) return absl::OkStatus();
  return InvalidAttend(field, ": shape is ", ShapeText(tensor.shape), ", query's is ",
                       ShapeText(query.shape), ": they must have as many dims");
}

// starts [batch + 1] of lengths [batch], which must sum up to the tensor's rows.
absl::Status ReadLengths(absl::string_view field, const Lengths& lengths,
                         absl::string_view tensor_field, const WireTensor& tensor,
                         std::vector<int64_t>& starts) {
  const int64_t rows = tensor.dim(0);
  starts.assign(1, 0);
  for (int i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 || lengths[i] > rows - starts.back()) {
      return InvalidAttend(field, "[", i, "] is ", lengths[i], ", it must be from 1 to the ",
                           rows - starts.back(), " rows that are left of ", tensor_field, "'s ",
                           rows);
    }
    starts.push_back(starts.back() + lengths[i]);
  }
  if (starts.back() == rows) return absl::OkStatus();
  return InvalidAttend(field, " sum up to ", starts.back(), ", ", tensor_field, " has ", rows,
                       " rows");
}

absl::StatusOr<Sequences> ReadSequences(const Layout& layout, absl::string_view lengths_field,
                                        const Lengths& lengths, absl::string_view tensor_field,
                                        const WireTensor& tensor, std::vector<int64_t>& starts) {
  if (!layout.ragged) return Sequences::Dense(tensor.dim(0), tensor.dim(tensor.rank() - 2));
  ATTENDANT_RETURN_IF_ERROR(ReadLengths(lengths_field, lengths, tensor_field, tensor, starts));
  return Sequences::Packed(starts);
}

InputRows RowsOf(const Layout& layout, const WireTensor& tensor) {
  const int64_t dim = tensor.dim(tensor.rank() - 1);
  if (layout.ragged) {
    return InputRows::TokensFirst(nullptr, layout.with_heads ? tensor.dim(1) : 1, dim);
  }
  const int64_t seq = tensor.dim(tensor.rank() - 2);
  return layout.with_heads ? InputRows::HeadsFirst(nullptr, tensor.dim(1), dim, seq)
                           : InputRows::TokensFirst(nullptr, 1, dim, seq);
}

absl::Status CheckSameTokens(const Layout& layout, const WireTensor& key, const WireTensor& value) {
  const auto at = [&](const WireTensor& t) { return layout.ragged ? 0 : t.rank() - 2; };
  const bool same = key.dim(at(key)) == value.dim(at(value)) && key.dim(0) == value.dim(0);
  if (same) return absl::OkStatus();
  return InvalidAttend("value: shape is ", ShapeText(value.shape), ", key's is ",
                       ShapeText(key.shape), ": they must have the same tokens");
}

}  // namespace

absl::Status PlanOperands(const v1::AttendRequest& request, AttendPlan& plan) {
  if (!request.has_query()) return InvalidAttend("query is not set");
  if (request.has_value() && !request.has_key()) return InvalidAttend("value is set, key is not");
  ATTENDANT_ASSIGN_OR_RETURN(plan.query, ReadNumbers("query", request.query(), kMaxTensorRank));
  plan.key = plan.query;
  if (request.has_key()) {
    ATTENDANT_ASSIGN_OR_RETURN(plan.key, ReadNumbers("key", request.key(), kMaxTensorRank));
  }
  plan.value = plan.key;
  if (request.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(plan.value, ReadNumbers("value", request.value(), kMaxTensorRank));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(request, plan.query));
  ATTENDANT_RETURN_IF_ERROR(CheckRank("key", plan.key, plan.query));
  ATTENDANT_RETURN_IF_ERROR(CheckRank("value", plan.value, plan.query));
  // Reads dims of key and value that they have once their ranks are query's.
  ATTENDANT_RETURN_IF_ERROR(CheckSameTokens(layout, plan.key, plan.value));
  const bool own_lengths = request.key_lengths_size() > 0;
  const auto& key_lengths = own_lengths ? request.key_lengths() : request.query_lengths();
  plan.with_heads = layout.with_heads;
  attention::Call& call = plan.call;
  ATTENDANT_ASSIGN_OR_RETURN(
      call.queries, ReadSequences(layout, "query_lengths", request.query_lengths(), "query",
                                  plan.query, plan.query_starts));
  ATTENDANT_ASSIGN_OR_RETURN(
      call.keys, ReadSequences(layout, own_lengths ? "key_lengths" : "query_lengths", key_lengths,
                               "key", plan.key, plan.key_starts));
  call.query = RowsOf(layout, plan.query);
  call.key = RowsOf(layout, plan.key);
  call.value = RowsOf(layout, plan.value);
  return absl::OkStatus();
}

}  // namespace attendant
