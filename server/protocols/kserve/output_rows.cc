// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/output_rows.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace attendant {
namespace {

constexpr int32_t kNoToken = -1;

// Adds a tensor of `spec` with so many rows, whose contents are yet to come.
std::string& AddTensorOf(const TensorSpec& spec, size_t rows, int64_t length,
                         inference::ModelInferResponse& response) {
  auto& tensor = *response.add_outputs();
  tensor.set_name(std::string(spec.name));
  tensor.set_datatype(std::string(spec.datatype));
  tensor.add_shape(static_cast<int64_t>(rows));
  tensor.add_shape(length);
  if (spec.dims.size() > 1) tensor.add_shape(spec.dims[1]);
  return *response.add_raw_output_contents();
}

template <typename T>
void AddRows(const EncodeOutput& output, const TensorSpec& spec, T padding,
             const std::vector<T>& (*values_of)(const EncodedSequence&),
             inference::ModelInferResponse& response) {
  const int64_t columns = spec.dims.size() > 1 ? spec.dims[1] : 1;
  size_t longest = 0;
  for (const EncodedSequence& sequence : output.sequences) {
    longest = std::max(longest, values_of(sequence).size());
  }
  std::string& data =
      AddTensorOf(spec, output.sequences.size(), static_cast<int64_t>(longest) / columns, response);
  data.reserve(output.sequences.size() * longest * sizeof(T));
  for (const EncodedSequence& sequence : output.sequences) {
    const std::vector<T>& values = values_of(sequence);
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    for (size_t i = values.size(); i < longest; ++i) {
      data.append(reinterpret_cast<const char*>(&padding), sizeof(T));
    }
  }
}

void AddHiddenStates(const EncodeOutput& output, const TensorSpec& spec, int64_t seq,
                     inference::ModelInferResponse& response) {
  const size_t row_bytes = static_cast<size_t>(RowValues(spec, seq)) * sizeof(float);
  std::string& data = AddTensorOf(spec, output.sequences.size(), seq, response);
  data.resize(output.sequences.size() * row_bytes);
  char* row = data.data();
  for (const EncodedSequence& sequence : output.sequences) {
    ScatterRows(sequence, spec.dims[1], sequence.result.last_hidden_state.data(),
                reinterpret_cast<float*>(row));
    row += row_bytes;
  }
}

}  // namespace

void AddPadded(const EncodeOutput& output, const TensorSpec& spec,
               const std::vector<float>& (*values_of)(const EncodedSequence&),
               inference::ModelInferResponse& response) {
  AddRows(output, spec, 0.0f, values_of, response);
}

void AddPadded(const EncodeOutput& output, const TensorSpec& spec,
               const std::vector<int32_t>& (*values_of)(const EncodedSequence&),
               inference::ModelInferResponse& response) {
  AddRows(output, spec, kNoToken, values_of, response);
}

TensorSpec HiddenStates(absl::string_view name, std::vector<int64_t> dims) {
  return {.name = name,
          .datatype = "FP32",
          .data_type = inference::TYPE_FP32,
          .dims = std::move(dims),
          .add = AddHiddenStates};
}

}  // namespace attendant
