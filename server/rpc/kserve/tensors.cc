// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/quote.h"
#include "server/rpc/kserve/inputs.h"
#include "server/rpc/kserve/parameters.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little, "raw contents are little-endian");

// Cuts the next element off `rest`: its length as uint32, then its bytes.
std::optional<absl::string_view> NextElement(absl::string_view& rest) {
  uint32_t length = 0;
  if (rest.size() < sizeof(length)) return std::nullopt;
  std::memcpy(&length, rest.data(), sizeof(length));
  rest.remove_prefix(sizeof(length));
  if (rest.size() < length) return std::nullopt;
  const absl::string_view element = rest.substr(0, length);
  rest.remove_prefix(length);
  return element;
}

absl::StatusOr<InferInputs> DecodeTexts(const InputTensor& text) {
  InferInputs inputs;
  if (text.raw == nullptr) {
    for (const std::string& element : text.contents->bytes_contents()) {
      inputs.sequences.emplace_back(element);
    }
    return inputs;
  }
  absl::string_view rest = *text.raw;
  for (int64_t i = 0; i < text.batch; ++i) {
    const std::optional<absl::string_view> element = NextElement(rest);
    if (!element.has_value()) {
      return InputError(text.name, "ends inside element ", i, " of ", text.batch);
    }
    inputs.sequences.emplace_back(std::string(*element));
  }
  if (!rest.empty()) {
    return InputError(text.name, "has ", rest.size(), " bytes after its ", text.batch, " elements");
  }
  return inputs;
}

std::vector<int64_t> ReadRow(const InputTensor& tensor, int64_t row) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.width));
  const int64_t first = row * tensor.width;
  if (tensor.raw != nullptr) {
    const char* bytes = tensor.raw->data() + first * tensor.value_bytes;
    if (tensor.value_bytes == 8) {
      std::memcpy(values.data(), bytes, values.size() * 8);
      return values;
    }
    std::vector<int32_t> narrow(values.size());
    std::memcpy(narrow.data(), bytes, narrow.size() * 4);
    std::copy(narrow.begin(), narrow.end(), values.begin());
  } else if (tensor.value_bytes == 8) {
    std::copy_n(tensor.contents->int64_contents().begin() + first, tensor.width, values.begin());
  } else {
    std::copy_n(tensor.contents->int_contents().begin() + first, tensor.width, values.begin());
  }
  return values;
}

absl::StatusOr<std::vector<uint8_t>> ReadMaskRow(const InputTensor& tensor, int64_t row) {
  const std::vector<int64_t> values = ReadRow(tensor, row);
  std::vector<uint8_t> mask(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0 && values[i] != 1) {
      return InputError(tensor.name, "has ", values[i], " at [", row, ", ", i,
                        "], it must be 0 or 1");
    }
    mask[i] = static_cast<uint8_t>(values[i]);
  }
  return mask;
}

absl::StatusOr<InferInputs> DecodeIds(const InputTensor& ids,
                                      const std::optional<InputTensor>& mask,
                                      const std::optional<InputTensor>& segments) {
  InferInputs inputs;
  inputs.seq = ids.width;
  inputs.sequences.reserve(static_cast<size_t>(ids.batch));
  for (int64_t row = 0; row < ids.batch; ++row) {
    IdsInput sequence;
    sequence.token_ids = ReadRow(ids, row);
    if (segments.has_value()) sequence.segment_ids = ReadRow(*segments, row);
    if (mask.has_value()) {
      absl::StatusOr<std::vector<uint8_t>> values = ReadMaskRow(*mask, row);
      if (!values.ok()) return values.status();
      sequence.attention_mask = *std::move(values);
    }
    inputs.sequences.emplace_back(std::move(sequence));
  }
  return inputs;
}

}  // namespace

absl::StatusOr<InferInputs> DecodeInferInputs(const inference::ModelInferRequest& request,
                                              const ServedModel& model) {
  const std::vector<TensorSpec> specs = InputSpecs(model.kind);
  const absl::StatusOr<InputTensors> tensors = CheckInputs(request, specs, model);
  if (!tensors.ok()) return tensors.status();
  if (model.kind == ServedName::kText) return DecodeTexts(*(*tensors)[0]);
  return DecodeIds(*(*tensors)[0], (*tensors)[1], (*tensors)[2]);
}

absl::Status CheckRequestedOutputs(const inference::ModelInferRequest& request,
                                   const ServedModel& model) {
  const TensorSpec spec = OutputSpecOf(model);
  for (int i = 0; i < request.outputs_size(); ++i) {
    const auto& output = request.outputs(i);
    if (output.name() != spec.name) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quote(output.name()), " is unknown, the model has ", spec.name));
    }
    if (i > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quote(output.name()), " was requested twice"));
    }
    const absl::Status status = CheckTensorParameters(output.name(), output.parameters());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void AppendInferOutput(const EncodeOutput& output, const ServedModel& model, int64_t seq,
                       inference::ModelInferResponse& response) {
  const bool states = model.kind == ServedName::kEncoder;
  const int64_t row_values = states ? seq * output.hidden : output.hidden;
  const size_t row_bytes = static_cast<size_t>(row_values) * sizeof(float);
  const TensorSpec spec = OutputSpecOf(model);
  auto& tensor = *response.add_outputs();
  tensor.set_name(std::string(spec.name));
  tensor.set_datatype(std::string(spec.datatype));
  tensor.add_shape(static_cast<int64_t>(output.sequences.size()));
  if (states) tensor.add_shape(seq);
  tensor.add_shape(output.hidden);

  std::string& data = *response.add_raw_output_contents();
  data.resize(output.sequences.size() * row_bytes);
  char* row = data.data();
  for (const EncodedSequence& sequence : output.sequences) {
    if (states) {
      ScatterRows(sequence, output.hidden, sequence.result.last_hidden_state.data(),
                  reinterpret_cast<float*>(row));
    } else {
      std::memcpy(row, sequence.result.pooled.data(), row_bytes);
    }
    row += row_bytes;
  }
}

}  // namespace attendant
