// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/output_tensors.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/kserve/parameters.h"
#include "server/requests/tasks.h"

namespace attendant {

absl::Status CheckRequestedOutputs(const inference::ModelInferRequest& request,
                                   const KServeModelInfo& model, bool shared_memory) {
  const std::vector<TensorSpec> specs = model.outputs();
  const bool fixed_size = !model.kind->sized_by_results;
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
  return static_cast<int64_t>(inputs.sequences.size() * sizeof(float)) *
         RowValues(model.outputs().front(), inputs.seq);
}

int64_t PaddedBytes(const EncodeOutput& output, const KServeModelInfo& model) {
  if (!model.kind->sized_by_results) return 0;
  const AskedTask& task = output.tasks[0];
  const auto batch = static_cast<int64_t>(output.sequences.size());
  int64_t rows = 0, looked_up = 0;
  for (const EncodedSequence& sequence : output.sequences) {
    rows = std::max(rows, sequence.len());
    if (!sequence.looked_up()) continue;
    looked_up =
        std::max(looked_up, static_cast<int64_t>(sequence.rare_outputs().looked_up->values.size()));
  }
  if (task.columns > 0) {
    const int64_t row_bytes = task.columns * TaskValueBytes(task) + int64_t{sizeof(int32_t)};
    return batch * rows * row_bytes;
  }
  // Of vectors that are computed, response_bytes counts the whole vocabulary.
  return std::max(output.response_bytes, batch * looked_up * TaskValueBytes(task));
}

void ToProto(const EncodeOutput& output, const KServeModelInfo& model, int64_t seq,
             inference::ModelInferResponse& response) {
  for (const TensorSpec& spec : model.outputs()) spec.add(output, spec, seq, response);
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
