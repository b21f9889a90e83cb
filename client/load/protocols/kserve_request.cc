// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/kserve_request.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Input = KserveModel::Input;

enum class Role { kText, kIds, kMask, kZeros };

Role RoleOf(const Input& input) {
  const std::string name = absl::AsciiStrToLower(input.name);
  if (input.datatype == "BYTES") return Role::kText;
  if (absl::StrContains(name, "mask")) return Role::kMask;
  if (absl::StrContains(name, "type") || absl::StrContains(name, "segment")) return Role::kZeros;
  return Role::kIds;
}

template <typename T>
void AppendValue(T value, std::string& out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void AppendNumber(const std::string& datatype, int64_t value, std::string& out) {
  if (datatype == "INT64") return AppendValue<int64_t>(value, out);
  if (datatype == "INT32") return AppendValue(static_cast<int32_t>(value), out);
  AppendValue(static_cast<float>(value), out);
}

constexpr int64_t kMaxInputValues = int64_t{1} << 24;

absl::StatusOr<std::vector<int64_t>> ResolveDims(const Input& input, int64_t seq) {
  std::vector<int64_t> dims = input.dims;
  const auto free = std::find(dims.begin(), dims.end(), -1);
  if (free != dims.end()) *free = input.datatype == "BYTES" ? 1 : seq;
  if (std::find(dims.begin(), dims.end(), -1) == dims.end()) {
    int64_t values = 1;
    for (const int64_t dim : dims) {
      if (dim < 0 || (dim > 0 && values > kMaxInputValues / dim)) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the input ", input.name, " has shape [", absl::StrJoin(dims, ", "), "]: the limit is ",
            kMaxInputValues, " values, and no dimension is negative"));
      }
      values *= dim;
    }
    return dims;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the input ", input.name, " has shape [", absl::StrJoin(input.dims, ", "),
                   "]: give it one with --shape ", input.name, ":N,N"));
}

// Sequences of token ids, and the length of the longest.
struct Rows {
  std::vector<std::vector<int32_t>> ids;
  int64_t seq = 0;
};

// Without a mask to mark padding, every sequence gets the length of the first.
Rows MakeRows(const KserveModel& model, const Payload& payload) {
  Rows rows{.ids = payload.ids};
  for (std::vector<int32_t>& ids : rows.ids) {
    if (!model.has_mask()) ids.resize(rows.ids[0].size(), ids[0]);
    rows.seq = std::max(rows.seq, static_cast<int64_t>(ids.size()));
  }
  return rows;
}

// Tokens that fit into inputs of `values` values.
int64_t CountTokens(const Rows& rows, int64_t values) {
  int64_t tokens = 0;
  for (const std::vector<int32_t>& ids : rows.ids) {
    tokens += std::min(values, static_cast<int64_t>(ids.size()));
  }
  return tokens;
}

// `values` numbers: the sequence, then padding.
std::string FillNumbers(const Input& input, const std::vector<int32_t>& ids, int64_t values) {
  const Role role = RoleOf(input);
  std::string out;
  for (size_t i = 0; i < static_cast<size_t>(values); ++i) {
    int64_t number = 0;
    if (role == Role::kIds && i < ids.size()) number = ids[i];
    if (role == Role::kMask && i < ids.size()) number = 1;
    AppendNumber(input.datatype, number, out);
  }
  return out;
}

// The same text `values` times.
std::string FillTexts(const std::string& text, int64_t values) {
  std::string out;
  for (int64_t i = 0; i < values; ++i) {
    AppendValue(static_cast<uint32_t>(text.size()), out);
    absl::StrAppend(&out, text);
  }
  return out;
}

// The values of an input for the whole batch: of the ids, or of the texts where there are none.
absl::StatusOr<std::string> FillRows(const Input& input, const Rows& rows,
                                     const std::vector<std::string>& texts, int64_t values) {
  const bool takes_text = RoleOf(input) == Role::kText;
  std::string out;
  for (const std::vector<int32_t>& ids : rows.ids) {
    out += takes_text ? FillTexts(SpellOut(ids), values) : FillNumbers(input, ids, values);
  }
  if (!rows.ids.empty()) return out;
  if (!takes_text) {
    return absl::FailedPreconditionError(
        absl::StrCat("the input ", input.name, " takes numbers: use --lengths instead of --texts"));
  }
  for (const std::string& text : texts) out += FillTexts(text, values);
  return out;
}

}  // namespace

bool KserveModel::has_mask() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Input& input) { return RoleOf(input) == Role::kMask; });
}

bool KserveModel::takes_texts() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Input& input) { return RoleOf(input) == Role::kText; });
}

absl::StatusOr<KserveModel> ToKserveModel(const inference::ModelMetadataResponse& metadata,
                                          int64_t max_batch_size) {
  KserveModel model{.name = metadata.name(), .max_batch_size = max_batch_size, .inputs = {}};
  for (const auto& tensor : metadata.inputs()) {
    static constexpr const char* kDatatypes[] = {"BYTES", "INT64", "INT32", "FP32"};
    if (std::find(std::begin(kDatatypes), std::end(kDatatypes), tensor.datatype()) ==
        std::end(kDatatypes)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the input ", tensor.name(), " has datatype ", tensor.datatype(),
                       "; this load generator makes ", absl::StrJoin(kDatatypes, ", ")));
    }
    const int skipped = max_batch_size > 0 && tensor.shape_size() > 0 ? 1 : 0;
    model.inputs.push_back({.name = tensor.name(),
                            .datatype = tensor.datatype(),
                            .dims = {tensor.shape().begin() + skipped, tensor.shape().end()}});
  }
  return model;
}

absl::StatusOr<KserveModel> DescribeKserveModel(const inference::ModelMetadataResponse& metadata,
                                                const inference::ModelConfig& config,
                                                const std::vector<std::string>& shapes) {
  if (config.model_transaction_policy().decoupled()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model ", metadata.name(), " is decoupled: a request may have many answers"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(KserveModel model, ToKserveModel(metadata, config.max_batch_size()));
  ATTENDANT_RETURN_IF_ERROR(ApplyShapes(shapes, model));
  return model;
}

absl::Status ApplyShapes(const std::vector<std::string>& shapes, KserveModel& model) {
  for (const std::string& shape : shapes) {
    const size_t colon = shape.rfind(':');
    const std::string name = shape.substr(0, colon);
    const auto input = std::find_if(model.inputs.begin(), model.inputs.end(),
                                    [&](const Input& candidate) { return candidate.name == name; });
    std::vector<int64_t> dims;
    bool good = colon != std::string::npos && input != model.inputs.end();
    for (absl::string_view part :
         absl::StrSplit(good ? shape.substr(colon + 1) : std::string(), ',')) {
      int64_t dim = 0;
      good = good && absl::SimpleAtoi(part, &dim) && (dim == -1 || (dim > 0 && dim <= 1 << 24));
      dims.push_back(dim);
    }
    if (!good || dims.size() != input->dims.size()) {
      return absl::FailedPreconditionError(absl::StrCat("--shape ", shape,
                                                        " does not name an input of ", model.name,
                                                        " with all its dimensions"));
    }
    input->dims = std::move(dims);
  }
  return absl::OkStatus();
}

absl::StatusOr<KserveRequest> MakeKserveRequest(const KserveModel& model, const Payload& payload) {
  const auto batch = static_cast<int64_t>(std::max(payload.texts.size(), payload.ids.size()));
  const int64_t max_batch = std::max<int64_t>(1, model.max_batch_size);
  if (batch > max_batch) {
    return absl::FailedPreconditionError(
        absl::StrCat("--batch ", batch, ": the limit of ", model.name, " is ", max_batch));
  }
  const Rows rows = MakeRows(model, payload);
  KserveRequest request;
  request.proto.set_model_name(model.name);
  for (const Input& input : model.inputs) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ResolveDims(input, rows.seq));
    auto& tensor = *request.proto.add_inputs();
    tensor.set_name(input.name);
    tensor.set_datatype(input.datatype);
    if (model.max_batch_size > 0) tensor.add_shape(batch);
    tensor.mutable_shape()->Add(dims.begin(), dims.end());
    const int64_t values =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
    ATTENDANT_ASSIGN_OR_RETURN(*request.proto.add_raw_input_contents(),
                               FillRows(input, rows, payload.texts, values));
    if (&input == &model.inputs.front() && RoleOf(input) == Role::kIds) {
      request.tokens = CountTokens(rows, values);
    }
  }
  return request;
}

}  // namespace attendant::client
