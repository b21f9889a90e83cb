// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/inputs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/core/quote.h"
#include "server/rpc/kserve/parameters.h"

namespace attendant {
namespace {

using InputProto = inference::ModelInferRequest::InferInputTensor;

std::string ShapeText(const InputProto& input) {
  return absl::StrCat("[", absl::StrJoin(input.shape(), ", "), "]");
}

// Every dimension is checked against its limit before any two are multiplied.
absl::Status CheckShape(const InputProto& input, const TensorSpec& spec, const ServedModel& model) {
  if (input.shape_size() != 2) {
    return InputError(input.name(), "has ", input.shape_size(),
                      " dimensions, expected 2: the batch and ",
                      spec.dims[0] == 1 ? "1" : "the padded length");
  }
  if (input.shape(0) < 1 || input.shape(1) < 1) {
    return InputError(input.name(), "has shape ", ShapeText(input), ", the minimum is 1");
  }
  if (input.shape(0) > model.max_batch_size) {
    return InputError(input.name(), "has batch size ", input.shape(0), ", the limit is ",
                      model.max_batch_size);
  }
  if (spec.dims[0] == 1 && input.shape(1) != 1) {
    return InputError(input.name(), "has shape ", ShapeText(input), ", expected [batch, 1]");
  }
  if (input.shape(1) > model.max_sequence_tokens) {
    return InputError(input.name(), "has length ", input.shape(1), ", the limit is ",
                      model.max_sequence_tokens);
  }
  return absl::OkStatus();
}

// Bytes of one value, 0 for BYTES.
absl::StatusOr<int64_t> CheckDatatype(const InputProto& input, const TensorSpec& spec) {
  if (input.datatype() == spec.datatype) return spec.datatype == "BYTES" ? 0 : 8;
  if (spec.datatype == "INT64" && input.datatype() == "INT32") return 4;
  return InputError(input.name(), "has datatype ", Quote(input.datatype()), ", expected ",
                    spec.datatype);
}

int64_t TotalValues(const inference::InferTensorContents& contents) {
  return int64_t{contents.bool_contents_size()} + contents.int_contents_size() +
         contents.int64_contents_size() + contents.uint_contents_size() +
         contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

absl::Status CheckTypedContents(const InputTensor& tensor) {
  const inference::InferTensorContents& contents = *tensor.contents;
  const int64_t expected = tensor.batch * tensor.width;
  const auto [field, values] =
      tensor.value_bytes == 0   ? std::pair("bytes_contents", contents.bytes_contents_size())
      : tensor.value_bytes == 4 ? std::pair("int_contents", contents.int_contents_size())
                                : std::pair("int64_contents", contents.int64_contents_size());
  if (values != expected) {
    return InputError(tensor.name, "has ", values, " values in ", field, ", its shape has ",
                      expected);
  }
  if (TotalValues(contents) != expected) {
    return InputError(tensor.name, "has values outside of ", field);
  }
  return absl::OkStatus();
}

absl::Status CheckRawContents(const InputTensor& tensor) {
  if (TotalValues(*tensor.contents) != 0) {
    return InputError(tensor.name, "has values in contents beside raw_input_contents");
  }
  const int64_t expected = tensor.batch * tensor.width * tensor.value_bytes;
  const auto bytes = static_cast<int64_t>(tensor.raw->size());
  if (tensor.value_bytes > 0 && bytes != expected) {
    return InputError(tensor.name, "has ", bytes, " bytes of raw contents, its shape has ",
                      expected);
  }
  return absl::OkStatus();
}

absl::StatusOr<InputTensor> CheckInput(const InputProto& input, const std::string* raw,
                                       const TensorSpec& spec, const ServedModel& model) {
  absl::Status status = CheckTensorParameters(input.name(), input.parameters());
  if (!status.ok()) return status;
  const absl::StatusOr<int64_t> value_bytes = CheckDatatype(input, spec);
  if (!value_bytes.ok()) return value_bytes.status();
  status = CheckShape(input, spec, model);
  if (!status.ok()) return status;
  const InputTensor tensor{.name = spec.name,
                           .batch = input.shape(0),
                           .width = input.shape(1),
                           .value_bytes = *value_bytes,
                           .raw = raw,
                           .contents = &input.contents()};
  status = raw == nullptr ? CheckTypedContents(tensor) : CheckRawContents(tensor);
  if (!status.ok()) return status;
  return tensor;
}

std::string InputNames(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, ", ", [](std::string* out, const TensorSpec& spec) {
    absl::StrAppend(out, spec.name);
  });
}

// The place of an input's name among `specs`. Since no name may come twice, a request is refused
// before more inputs are looked at than there are specs.
absl::StatusOr<size_t> FindSpec(const std::vector<TensorSpec>& specs, const InputProto& input,
                                const InputTensors& tensors) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) {
    return spec.name == input.name();
  });
  if (found == specs.end()) {
    return InputError(input.name(), "is unknown, the model has ", InputNames(specs));
  }
  const auto index = static_cast<size_t>(found - specs.begin());
  if (tensors[index].has_value()) return InputError(input.name(), "was given twice");
  return index;
}

// One after the other.
absl::StatusOr<InputTensors> CheckEach(const inference::ModelInferRequest& request,
                                       const std::vector<TensorSpec>& specs,
                                       const ServedModel& model) {
  const bool has_raw = request.raw_input_contents_size() > 0;
  if (has_raw && request.raw_input_contents_size() != request.inputs_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("raw_input_contents has ", request.raw_input_contents_size(), " entries for ",
                     request.inputs_size(), " inputs"));
  }
  InputTensors tensors(specs.size());
  for (int i = 0; i < request.inputs_size(); ++i) {
    const InputProto& input = request.inputs(i);
    const absl::StatusOr<size_t> index = FindSpec(specs, input, tensors);
    if (!index.ok()) return index.status();
    const absl::StatusOr<InputTensor> tensor =
        CheckInput(input, has_raw ? &request.raw_input_contents(i) : nullptr, specs[*index], model);
    if (!tensor.ok()) return tensor.status();
    tensors[*index] = *tensor;
  }
  return tensors;
}

absl::Status CheckTogether(const InputTensors& tensors, const std::vector<TensorSpec>& specs) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!tensors[i].has_value()) {
      if (specs[i].optional) continue;
      return InputError(specs[i].name, "is missing");
    }
    const InputTensor& first = *tensors[0];
    const InputTensor& tensor = *tensors[i];
    if (tensor.batch != first.batch || tensor.width != first.width) {
      return InputError(tensor.name, "has shape [", tensor.batch, ", ", tensor.width, "], but '",
                        first.name, "' has [", first.batch, ", ", first.width, "]");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InputTensors> CheckInputs(const inference::ModelInferRequest& request,
                                         const std::vector<TensorSpec>& specs,
                                         const ServedModel& model) {
  absl::StatusOr<InputTensors> tensors = CheckEach(request, specs, model);
  if (!tensors.ok()) return tensors;
  const absl::Status together = CheckTogether(*tensors, specs);
  if (!together.ok()) return together;
  return tensors;
}

}  // namespace attendant
