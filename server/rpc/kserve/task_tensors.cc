// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/task_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/heads/head.h"
#include "server/models/served_name.h"
#include "server/requests/tasks.h"

namespace attendant {
namespace {

constexpr int32_t kNoToken = -1;

TensorSpec Integers(absl::string_view name, std::vector<int64_t> dims) {
  return {.name = name,
          .datatype = "INT32",
          .data_type = inference::TYPE_INT32,
          .dims = std::move(dims)};
}

TensorSpec Numbers(absl::string_view name, std::vector<int64_t> dims) {
  return {
      .name = name, .datatype = "FP32", .data_type = inference::TYPE_FP32, .dims = std::move(dims)};
}

// Adds the tensor of `spec` with a row for each sequence, those of `values_of` padded to the
// longest one.
template <typename T, typename ValuesOf>
void AddPadded(const EncodeOutput& output, const TensorSpec& spec, T padding, ValuesOf values_of,
               inference::ModelInferResponse& response) {
  const int64_t columns = spec.dims.size() > 1 ? spec.dims[1] : 1;
  size_t longest = 0;
  for (const EncodedSequence& sequence : output.sequences) {
    longest = std::max(longest, values_of(sequence).size());
  }
  auto& tensor = *response.add_outputs();
  tensor.set_name(std::string(spec.name));
  tensor.set_datatype(std::string(spec.datatype));
  tensor.add_shape(static_cast<int64_t>(output.sequences.size()));
  tensor.add_shape(static_cast<int64_t>(longest) / columns);
  if (spec.dims.size() > 1) tensor.add_shape(columns);
  std::string& data = *response.add_raw_output_contents();
  data.reserve(output.sequences.size() * longest * sizeof(T));
  for (const EncodedSequence& sequence : output.sequences) {
    const std::vector<T>& values = values_of(sequence);
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    for (size_t i = values.size(); i < longest; ++i) {
      data.append(reinterpret_cast<const char*>(&padding), sizeof(T));
    }
  }
}

const HeadResult& ResultOf(const EncodedSequence& sequence) { return sequence.result.tasks[0]; }

const std::vector<int32_t>& IndicesOf(const EncodedSequence& sequence) {
  return ResultOf(sequence).indices;
}
const std::vector<int32_t>& PlacesOf(const EncodedSequence& sequence) {
  return ResultOf(sequence).tokens;
}
const std::vector<int32_t>& IdsOf(const EncodedSequence& sequence) { return sequence.token_ids; }
const std::vector<float>& ValuesOf(const EncodedSequence& sequence) {
  return ResultOf(sequence).values;
}

}  // namespace

std::vector<TensorSpec> TaskOutputSpecs(const KServeModelInfo& model) {
  const int64_t columns = model.task_columns;
  switch (*TaskOf(model.kind)) {
    case TaskKind::kSparse:
      return {Integers("indices", {-1}), Numbers("weights", {-1})};
    case TaskKind::kFillMask:
      return {Integers("tokens", {-1}), Integers("indices", {-1, columns}),
              Numbers("scores", {-1, columns})};
    case TaskKind::kTokenScores:
      return {Integers("token_ids", {-1}), Numbers("scores", {-1, columns})};
    case TaskKind::kMultiVector:
      break;
  }
  return {Integers("tokens", {-1}), Numbers("vectors", {-1, columns})};
}

int64_t TaskOutputBytes(const EncodeOutput& output) {
  const AskedTask& task = output.tasks[0];
  const auto batch = static_cast<int64_t>(output.sequences.size());
  int64_t rows = 0, looked_up = 0;
  for (const EncodedSequence& sequence : output.sequences) {
    rows = std::max(rows, sequence.len());
    if (!sequence.looked_up()) continue;
    looked_up = std::max(looked_up, static_cast<int64_t>(sequence.rare().looked_up->values.size()));
  }
  if (task.columns > 0) {
    const int64_t row_bytes = task.columns * TaskValueBytes(task) + int64_t{sizeof(int32_t)};
    return batch * rows * row_bytes;
  }
  // Of vectors that are computed, response_bytes counts the whole vocabulary.
  return std::max(output.response_bytes, batch * looked_up * TaskValueBytes(task));
}

void TaskOutputsToProto(const EncodeOutput& output, const KServeModelInfo& model,
                        inference::ModelInferResponse& response) {
  const std::vector<TensorSpec> specs = TaskOutputSpecs(model);
  const TaskKind kind = *TaskOf(model.kind);
  if (kind == TaskKind::kTokenScores) {
    AddPadded(output, specs.front(), kNoToken, IdsOf, response);
  } else if (kind != TaskKind::kSparse) {
    AddPadded(output, specs.front(), kNoToken, PlacesOf, response);
  }
  if (kind == TaskKind::kSparse || kind == TaskKind::kFillMask) {
    AddPadded(output, specs[specs.size() - 2], kNoToken, IndicesOf, response);
  }
  AddPadded(output, specs.back(), 0.0f, ValuesOf, response);
}

}  // namespace attendant
