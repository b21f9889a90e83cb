// SPDX-License-Identifier: Apache-2.0
#include "client/load/kserve_request.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

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

// Words that a text made of token ids is written with, where the server wants text.
std::string SpellOut(const std::vector<int32_t>& ids) {
  static constexpr const char* kWords[] = {"time",  "river", "paper", "light", "house", "green",
                                           "music", "stone", "water", "seven", "small", "often"};
  return absl::StrJoin(ids, " ", [](std::string* out, int32_t id) {
    absl::StrAppend(out, kWords[static_cast<size_t>(id) % std::size(kWords)]);
  });
}

absl::StatusOr<std::vector<int64_t>> ResolveDims(const Input& input, int64_t seq) {
  std::vector<int64_t> dims = input.dims;
  const auto free = std::find(dims.begin(), dims.end(), -1);
  if (free != dims.end()) *free = input.datatype == "BYTES" ? 1 : seq;
  if (std::find(dims.begin(), dims.end(), -1) == dims.end()) return dims;
  return absl::FailedPreconditionError(
      absl::StrCat("the input ", input.name, " has shape [", absl::StrJoin(input.dims, ", "),
                   "]: give it one with --shape ", input.name, ":N,N"));
}

// The values of one row: `seq` columns, `per_column` values for each.
std::string FillRow(const Input& input, Role role, const std::vector<int32_t>& ids,
                    int64_t values) {
  std::string out;
  for (int64_t i = 0; i < values; ++i) {
    const size_t at = static_cast<size_t>(i);
    const bool real = at < ids.size();
    const int64_t id = real ? ids[at] : 0;
    AppendNumber(input.datatype,
                 role == Role::kIds            ? id
                 : role == Role::kMask && real ? 1
                                               : 0,
                 out);
  }
  return out;
}

std::string FillTexts(const std::string& text, int64_t values) {
  std::string out;
  for (int64_t i = 0; i < values; ++i) {
    AppendValue(static_cast<uint32_t>(text.size()), out);
    absl::StrAppend(&out, text);
  }
  return out;
}

}  // namespace

bool KserveModel::has_mask() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Input& input) { return RoleOf(input) == Role::kMask; });
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
  const int64_t batch = static_cast<int64_t>(std::max(payload.texts.size(), payload.ids.size()));
  const bool batched = model.max_batch_size > 0;
  if (batch > std::max<int64_t>(1, model.max_batch_size)) {
    return absl::FailedPreconditionError(absl::StrCat("--batch ", batch, ": the limit of ",
                                                      model.name, " is ",
                                                      std::max<int64_t>(1, model.max_batch_size)));
  }
  std::vector<std::vector<int32_t>> rows = payload.ids;
  size_t seq = 0;
  for (std::vector<int32_t>& row : rows) {
    if (!model.has_mask()) row.resize(rows[0].size(), row[0]);
    seq = std::max(seq, row.size());
  }

  KserveRequest request;
  request.proto.set_model_name(model.name);
  for (const Input& input : model.inputs) {
    const Role role = RoleOf(input);
    if (role != Role::kText && rows.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the input ", input.name, " takes numbers: use --lengths instead of --texts"));
    }
    absl::StatusOr<std::vector<int64_t>> dims = ResolveDims(input, static_cast<int64_t>(seq));
    if (!dims.ok()) return dims.status();
    auto& tensor = *request.proto.add_inputs();
    tensor.set_name(input.name);
    tensor.set_datatype(input.datatype);
    if (batched) tensor.add_shape(batch);
    int64_t values = 1;
    for (int64_t dim : *dims) {
      tensor.add_shape(dim);
      values *= dim;
    }
    std::string& raw = *request.proto.add_raw_input_contents();
    for (size_t i = 0; i < static_cast<size_t>(batch); ++i) {
      if (role == Role::kText) {
        raw += FillTexts(rows.empty() ? payload.texts[i] : SpellOut(rows[i]), values);
        continue;
      }
      raw += FillRow(input, role, rows[i], values);
      if (role == Role::kIds && &input == &model.inputs.front()) {
        request.tokens += std::min(values, static_cast<int64_t>(rows[i].size()));
      }
    }
  }
  return request;
}

}  // namespace attendant::client
