// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/output_tensors.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/rpc/kserve/parameters.h"
#include "server/rpc/kserve/task_tensors.h"

namespace attendant {

absl::Status CheckRequestedOutputs(const inference::ModelInferRequest& request,
                                   const KServeModelInfo& model, bool shared_memory) {
  const std::vector<TensorSpec> specs = OutputSpecs(model);
  const bool fixed_size = !TaskOf(model.kind).has_value();
  std::vector<bool> seen(specs.size());
  for (const auto& output : request.outputs()) {
    const auto found = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) {
      return spec.name == output.name();
    });
    if (found == specs.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", Quote(output.name()), " is unknown, the model has ", TensorNames(specs)));
    }
    const auto index = static_cast<size_t>(found - specs.begin());
    if (seen[index]) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quote(output.name()), " was requested twice"));
    }
    seen[index] = true;
    ATTENDANT_RETURN_IF_ERROR(
        CheckTensorParameters(output.name(), output.parameters(), shared_memory && fixed_size));
  }
  return absl::OkStatus();
}

int64_t OutputBytes(const InferInputs& inputs, const KServeModelInfo& model) {
  int64_t row_values = model.embedding_dims;
  if (model.kind == ServedName::kEncoder) row_values = inputs.seq * model.hidden;
  if (model.kind == ServedName::kScores) row_values = model.labels;
  return static_cast<int64_t>(inputs.sequences.size() * sizeof(float)) * row_values;
}

void ToProto(const EncodeOutput& output, const KServeModelInfo& model, int64_t seq,
             inference::ModelInferResponse& response) {
  if (TaskOf(model.kind).has_value()) return TaskOutputsToProto(output, model, response);
  const bool states = model.kind == ServedName::kEncoder;
  const bool scores = model.kind == ServedName::kScores;
  const int64_t width = states ? output.layers.hidden : scores ? model.labels : output.outputs.dims;
  const int64_t row_values = states ? seq * width : width;
  const size_t row_bytes = static_cast<size_t>(row_values) * sizeof(float);
  const TensorSpec spec = OutputSpecs(model)[0];
  auto& tensor = *response.add_outputs();
  tensor.set_name(std::string(spec.name));
  tensor.set_datatype(std::string(spec.datatype));
  tensor.add_shape(static_cast<int64_t>(output.sequences.size()));
  if (states) tensor.add_shape(seq);
  tensor.add_shape(width);

  std::string& data = *response.add_raw_output_contents();
  data.resize(output.sequences.size() * row_bytes);
  char* row = data.data();
  for (const EncodedSequence& sequence : output.sequences) {
    if (states) {
      ScatterRows(sequence, output.layers.hidden, sequence.result.last_hidden_state.data(),
                  reinterpret_cast<float*>(row));
    } else {
      const std::vector<float>& values = scores ? sequence.scores : sequence.result.pooled;
      std::memcpy(row, values.data(), row_bytes);
    }
    row += row_bytes;
  }
}

void KeepOutputs(const std::vector<std::string>& names, inference::ModelInferResponse& response) {
  auto& tensors = *response.mutable_outputs();
  auto& contents = *response.mutable_raw_output_contents();
  int kept = 0;
  for (const std::string& name : names) {
    for (int i = kept; i < tensors.size(); ++i) {
      if (tensors[i].name() != name) continue;
      tensors.SwapElements(kept, i);
      contents.SwapElements(kept++, i);
      break;
    }
  }
  if (names.empty()) return;
  tensors.DeleteSubrange(kept, tensors.size() - kept);
  contents.DeleteSubrange(kept, contents.size() - kept);
}

}  // namespace attendant
