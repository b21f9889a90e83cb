// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/input_tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/kserve/parameters.h"

namespace attendant {
namespace {

using InputProto = inference::ModelInferRequest::InferInputTensor;

static_assert(std::endian::native == std::endian::little, "raw contents are little-endian");

// An input of a ModelInfer request whose name, datatype, shape and amount of data agree. Views the
// request.
struct InputTensor {
  absl::string_view name;
  int64_t batch = 0;
  int64_t width = 0;                 // values in a row
  int64_t value_bytes = 0;           // of integers; 0 for BYTES
  const std::string* raw = nullptr;  // null: the values are in `contents`
  const inference::InferTensorContents* contents = nullptr;
};

// By the place of their spec; empty for an input that the request leaves out.
using InputTensors = std::vector<std::optional<InputTensor>>;

template <typename... Parts>
absl::Status InputError(absl::string_view name, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("input ", Quote(name), " ", parts...));
}

std::string InputShapeText(const InputProto& input) {
  return absl::StrCat("[", absl::StrJoin(input.shape(), ", "), "]");
}

// Every dimension is checked against its limit before any two are multiplied.
absl::Status CheckShape(const InputProto& input, const TensorSpec& spec,
                        const KServeModelInfo& model) {
  if (input.shape_size() != 2) {
    return InputError(input.name(), "has ", input.shape_size(),
                      " dimensions, expected 2: the batch and ",
                      spec.dims[0] == 1 ? "1" : "the padded length");
  }
  if (input.shape(0) < 1 || input.shape(1) < 1) {
    return InputError(input.name(), "has shape ", InputShapeText(input), ", the minimum is 1");
  }
  if (input.shape(0) > model.max_batch_size) {
    return InputError(input.name(), "has batch size ", input.shape(0), ", the limit is ",
                      model.max_batch_size);
  }
  if (spec.dims[0] == 1 && input.shape(1) != 1) {
    return InputError(input.name(), "has shape ", InputShapeText(input), ", expected [batch, 1]");
  }
  if (input.shape(1) > spec.max_width) {
    return InputError(input.name(), "has length ", input.shape(1), ", the limit is ",
                      spec.max_width);
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

// `shared`: `raw` comes from shared memory.
absl::StatusOr<InputTensor> CheckInput(const InputProto& input, const std::string* raw, bool shared,
                                       const TensorSpec& spec, const KServeModelInfo& model) {
  ATTENDANT_RETURN_IF_ERROR(CheckTensorParameters(input.name(), input.parameters(), shared));
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t value_bytes, CheckDatatype(input, spec));
  ATTENDANT_RETURN_IF_ERROR(CheckShape(input, spec, model));
  const InputTensor tensor{.name = spec.name,
                           .batch = input.shape(0),
                           .width = input.shape(1),
                           .value_bytes = value_bytes,
                           .raw = raw,
                           .contents = &input.contents()};
  ATTENDANT_RETURN_IF_ERROR(raw == nullptr ? CheckTypedContents(tensor) : CheckRawContents(tensor));
  return tensor;
}

// The place of an input's name among `specs`. Since no name may come twice, a request is refused
// before more inputs are looked at than there are specs.
absl::StatusOr<size_t> FindSpec(const std::vector<TensorSpec>& specs, const InputProto& input,
                                const InputTensors& tensors) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) {
    return spec.name == input.name();
  });
  if (found == specs.end()) {
    return InputError(input.name(), "is unknown, the model has ", TensorNames(specs));
  }
  const auto index = static_cast<size_t>(found - specs.begin());
  if (tensors[index].has_value()) return InputError(input.name(), "was given twice");
  return index;
}

// Checks every input alone.
absl::StatusOr<InputTensors> CheckEach(const inference::ModelInferRequest& request,
                                       const std::vector<TensorSpec>& specs,
                                       const KServeModelInfo& model, const SharedInputs& shared) {
  const bool has_raw = request.raw_input_contents_size() > 0;
  const int inside = request.inputs_size() - static_cast<int>(shared.size());
  if (has_raw && request.raw_input_contents_size() != inside) {
    return absl::InvalidArgumentError(absl::StrCat("raw_input_contents has ",
                                                   request.raw_input_contents_size(),
                                                   " entries for ", inside, " inputs"));
  }
  InputTensors tensors(specs.size());
  int next_raw = 0;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const InputProto& input = request.inputs(i);
    ATTENDANT_ASSIGN_OR_RETURN(const size_t index, FindSpec(specs, input, tensors));
    const auto found = shared.find(i);
    const bool is_shared = found != shared.end();
    const std::string* raw = is_shared ? &found->second
                             : has_raw ? &request.raw_input_contents(next_raw++)
                                       : nullptr;
    ATTENDANT_ASSIGN_OR_RETURN(tensors[index],
                               CheckInput(input, raw, is_shared, specs[index], model));
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

// Checks every input of `request` alone and against the others, and lays them out by `specs`.
// Allocates nothing that grows with a shape. A raw BYTES tensor's elements are yet to be counted.
absl::StatusOr<InputTensors> CheckInputs(const inference::ModelInferRequest& request,
                                         const std::vector<TensorSpec>& specs,
                                         const KServeModelInfo& model, const SharedInputs& shared) {
  ATTENDANT_ASSIGN_OR_RETURN(InputTensors tensors, CheckEach(request, specs, model, shared));
  ATTENDANT_RETURN_IF_ERROR(CheckTogether(tensors, specs));
  return tensors;
}

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

// A text of each row, or a pair of texts. REQUIRES: as many texts as the shape has.
InferInputs RowsOf(std::vector<std::string> texts, int64_t width) {
  InferInputs inputs;
  for (size_t i = 0; i < texts.size(); i += static_cast<size_t>(width)) {
    if (width == 1) {
      inputs.sequences.emplace_back(std::move(texts[i]));
    } else {
      inputs.sequences.emplace_back(
          TextPair{.first = std::make_shared<const std::string>(std::move(texts[i])),
                   .second = std::move(texts[i + 1])});
    }
  }
  return inputs;
}

absl::StatusOr<InferInputs> TextsFromProto(const InputTensor& text) {
  if (text.raw == nullptr) {
    const auto& elements = text.contents->bytes_contents();
    return RowsOf({elements.begin(), elements.end()}, text.width);
  }
  const int64_t count = text.batch * text.width;
  std::vector<std::string> texts;
  absl::string_view rest = *text.raw;
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<absl::string_view> element = NextElement(rest);
    if (!element.has_value()) {
      return InputError(text.name, "ends inside element ", i, " of ", count);
    }
    texts.emplace_back(*element);
  }
  if (!rest.empty()) {
    return InputError(text.name, "has ", rest.size(), " bytes after its ", count, " elements");
  }
  return RowsOf(std::move(texts), text.width);
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

absl::StatusOr<InferInputs> IdsFromProto(const InputTensor& ids,
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
      ATTENDANT_ASSIGN_OR_RETURN(sequence.attention_mask, ReadMaskRow(*mask, row));
    }
    inputs.sequences.emplace_back(std::move(sequence));
  }
  return inputs;
}

}  // namespace

absl::StatusOr<InferInputs> InputsFromProto(const inference::ModelInferRequest& request,
                                            const KServeModelInfo& model,
                                            const SharedInputs& shared) {
  const std::vector<TensorSpec> specs = model.inputs();
  ATTENDANT_ASSIGN_OR_RETURN(const InputTensors tensors,
                             CheckInputs(request, specs, model, shared));
  if (model.kind->takes_texts()) return TextsFromProto(*tensors[0]);
  return IdsFromProto(*tensors[0], tensors[1], tensors[2]);
}

}  // namespace attendant
