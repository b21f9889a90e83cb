// SPDX-License-Identifier: Apache-2.0
#include "server/http/kserve/infer_message.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/kserve/models.h"
#include "server/protocols/kserve/served_kinds.h"
#include "server/requests/invalid.h"

namespace attendant {
namespace {

using Kind = JsonView::Kind;
using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

constexpr size_t kMaxEntries = 64;  // inputs, outputs, parameters
constexpr int kMaxRank = 8;

absl::Status ReadParameter(absl::string_view name, JsonView value,
                           inference::InferParameter& parameter) {
  switch (value.kind()) {
    case Kind::kBool:
      parameter.set_bool_param(value.Bool());
      return absl::OkStatus();
    case Kind::kInteger:
      parameter.set_int64_param(value.Integer());
      return absl::OkStatus();
    case Kind::kString:
      parameter.set_string_param(std::string(value.String()));
      return absl::OkStatus();
    case Kind::kNumber:
      parameter.set_double_param(value.Number());
      return absl::OkStatus();
    default:
      return WrongJsonType(absl::StrCat("parameter ", Quote(name)),
                           "a boolean, a number or a string", value);
  }
}

absl::Status ReadParameters(JsonView object, Parameters& parameters) {
  const std::optional<JsonView> found = object.Find("parameters");
  if (!found) return absl::OkStatus();
  if (found->kind() != Kind::kObject) return WrongJsonType("parameters", "an object", *found);
  return found->ForEachField([&parameters](absl::string_view name, JsonView value) {
    if (parameters.size() >= kMaxEntries) {
      return Invalid("parameters has more than ", kMaxEntries, " entries");
    }
    return ReadParameter(name, value, parameters[std::string(name.substr(0, kMaxIdBytes))]);
  });
}

// Takes a parameter that is about the transport: it says nothing to the model.
template <typename T>
absl::Status Take(Parameters& parameters, const std::string& name,
                  bool (inference::InferParameter::*has)() const,
                  T (inference::InferParameter::*get)() const, std::optional<T>& value) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return absl::OkStatus();
  if (!(found->second.*has)()) return Invalid("parameter '", name, "' has the wrong type");
  value = (found->second.*get)();
  parameters.erase(found);
  return absl::OkStatus();
}

absl::Status ForEachObject(JsonView root, absl::string_view field,
                           absl::FunctionRef<absl::Status(JsonView)> visit) {
  const std::optional<JsonView> list = root.Find(field);
  if (!list) return absl::OkStatus();
  if (list->kind() != Kind::kArray) return WrongJsonType(field, "an array", *list);
  if (list->size() > kMaxEntries) {
    return Invalid(field, " has ", list->size(), " entries, the limit is ", kMaxEntries);
  }
  return list->ForEach([&](JsonView entry) {
    if (entry.kind() != Kind::kObject) return WrongJsonType(field, "an array of objects", entry);
    return visit(entry);
  });
}

absl::Status ReadShape(JsonView input, inference::ModelInferRequest::InferInputTensor& tensor) {
  const std::optional<JsonView> shape = input.Find("shape");
  if (!shape) return Invalid("input ", Quote(tensor.name()), " has no shape");
  if (shape->kind() != Kind::kArray) return WrongJsonType("shape", "an array", *shape);
  return shape->ForEach([&tensor](JsonView dim) {
    if (dim.kind() != Kind::kInteger) return WrongJsonType("shape", "an array of integers", dim);
    if (tensor.shape_size() == kMaxRank) {
      return Invalid("shape has more than ", kMaxRank, " dimensions");
    }
    tensor.add_shape(dim.Integer());
    return absl::OkStatus();
  });
}

// `elements` in data, where the shape says how many. A shape that no tensor has is refused later.
absl::Status CheckElements(const inference::ModelInferRequest::InferInputTensor& tensor,
                           int64_t elements) {
  int64_t expected = 1;
  for (const int64_t dim : tensor.shape()) {
    if (dim < 0 || __builtin_mul_overflow(expected, dim, &expected)) return absl::OkStatus();
  }
  if (elements == expected) return absl::OkStatus();
  return Invalid("input ", Quote(tensor.name()), " has ", elements,
                 " elements in data, its shape [", absl::StrJoin(tensor.shape(), ","), "] has ",
                 expected);
}

// The values of a tensor as JSON, in one array or nested, as raw contents.
class DataReader {
 public:
  DataReader(absl::string_view datatype, int64_t max_texts)
      : datatype_(datatype), max_texts_(max_texts) {}

  absl::StatusOr<std::string> Read(JsonView data) {
    ATTENDANT_RETURN_IF_ERROR(Append(data));
    return std::move(raw_);
  }

  int64_t elements() const { return elements_; }

 private:
  absl::Status Append(JsonView value) {
    if (value.kind() == Kind::kArray) {
      return value.ForEach([this](JsonView inner) { return Append(inner); });
    }
    ++elements_;
    if (datatype_ == "BYTES") return AppendText(value);
    if (value.kind() != Kind::kInteger) return WrongJsonType("data", "integers", value);
    if (datatype_ == "INT64") return AppendNumber(value.Integer());
    const int64_t number = value.Integer();
    if (number < std::numeric_limits<int32_t>::min() ||
        number > std::numeric_limits<int32_t>::max()) {
      return Invalid("data has ", number, ", which is no ", datatype_);
    }
    return AppendNumber(static_cast<int32_t>(number));
  }

  template <typename Number>
  absl::Status AppendNumber(Number number) {
    raw_.append(reinterpret_cast<const char*>(&number), sizeof(number));
    return absl::OkStatus();
  }

  absl::Status AppendText(JsonView value) {
    if (value.kind() != Kind::kString) return WrongJsonType("data", "strings", value);
    if (elements_ > max_texts_) {
      return Invalid("data has more than ", max_texts_, " strings");
    }
    const absl::string_view text = value.String();
    const auto length = static_cast<uint32_t>(text.size());
    raw_.append(reinterpret_cast<const char*>(&length), sizeof(length));
    raw_.append(text.data(), text.size());
    return absl::OkStatus();
  }

  const absl::string_view datatype_;
  const int64_t max_texts_;
  int64_t elements_ = 0;
  std::string raw_;
};

bool IsTaken(absl::string_view datatype) {
  return datatype == "BYTES" || datatype == "INT64" || datatype == "INT32";
}

}  // namespace

bool InferForm::IsBinary(const std::string& output) const {
  const auto found = outputs.find(output);
  return found == outputs.end() ? binary : found->second;
}

bool InferForm::all_binary() const {
  if (outputs.empty()) return binary;
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const auto& output) { return output.second; });
}

InferMessage::InferMessage(HttpBody body, Head head, InferForm& form)
    : body_(std::move(body)),
      wire_bytes_(static_cast<int64_t>(body_.bytes.size())),
      head_(std::move(head)),
      form_(form) {}

absl::StatusOr<int64_t> InferMessage::Scan() {
  ATTENDANT_ASSIGN_OR_RETURN(text_bytes_, InflatedBytes(body_));
  const int64_t json_bytes = head_.json_bytes.value_or(text_bytes_);
  if (json_bytes < 0 || json_bytes > text_bytes_) {
    return Invalid("inference-header-content-length is ", json_bytes, ", the body has ",
                   text_bytes_, " bytes");
  }
  if (body_.gzip) return 2 * text_bytes_ + JsonText::MostMemoryBytes(json_bytes);
  const absl::string_view json =
      absl::string_view(body_.bytes).substr(0, static_cast<size_t>(json_bytes));
  return text_bytes_ + JsonText::MemoryBytes(json);
}

absl::Status InferMessage::Parse() {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string text, TakeText(body_, text_bytes_));
  const auto json_bytes = static_cast<size_t>(head_.json_bytes.value_or(text_bytes_));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonText json, JsonText::Parse(text.substr(0, json_bytes)));
  if (json.root().kind() != Kind::kObject) {
    return Invalid("the body must be a JSON object, not ", json.root().kind_name());
  }
  binary_ = absl::string_view(text).substr(json_bytes);
  const absl::Status status = ReadFields(json.root());
  const size_t left = std::exchange(binary_, absl::string_view()).size();
  if (status.ok() && left > 0) return Invalid("the body has ", left, " bytes after its tensors");
  return status;
}

absl::Status InferMessage::ReadFields(JsonView root) {
  request_.set_model_name(head_.model);
  request_.set_model_version(head_.version);
  std::string id;
  ATTENDANT_RETURN_IF_ERROR(root.Read("id", id));
  if (id.size() > kMaxIdBytes) {
    return Invalid("id has ", id.size(), " bytes, the limit is ", kMaxIdBytes);
  }
  request_.set_id(id);
  Parameters& parameters = *request_.mutable_parameters();
  ATTENDANT_RETURN_IF_ERROR(ReadParameters(root, parameters));
  if (head_.priority != 0 && !parameters.contains(kPriorityName)) {
    parameters[kPriorityName].set_int64_param(PriorityLevel(head_.priority));
  }
  std::optional<bool> binary;
  ATTENDANT_RETURN_IF_ERROR(Take(parameters, "binary_data_output",
                                 &inference::InferParameter::has_bool_param,
                                 &inference::InferParameter::bool_param, binary));
  form_.binary = binary.value_or(false);
  ATTENDANT_RETURN_IF_ERROR(
      ForEachObject(root, "inputs", [this](JsonView input) { return ReadInput(input); }));
  return ForEachObject(root, "outputs", [this](JsonView output) { return ReadOutput(output); });
}

absl::Status InferMessage::ReadInput(JsonView input) {
  auto& tensor = *request_.add_inputs();
  ATTENDANT_RETURN_IF_ERROR(input.Read("name", *tensor.mutable_name()));
  ATTENDANT_RETURN_IF_ERROR(input.Read("datatype", *tensor.mutable_datatype()));
  ATTENDANT_RETURN_IF_ERROR(ReadShape(input, tensor));
  Parameters& parameters = *tensor.mutable_parameters();
  ATTENDANT_RETURN_IF_ERROR(ReadParameters(input, parameters));
  std::optional<int64_t> bytes;
  ATTENDANT_RETURN_IF_ERROR(Take(parameters, "binary_data_size",
                                 &inference::InferParameter::has_int64_param,
                                 &inference::InferParameter::int64_param, bytes));
  std::string& raw = *request_.add_raw_input_contents();
  if (!bytes) {
    ATTENDANT_ASSIGN_OR_RETURN(raw, ReadRaw(input, tensor));
    return absl::OkStatus();
  }
  if (input.Find("data")) {
    return Invalid("input ", Quote(tensor.name()), " has both data and binary_data_size");
  }
  if (*bytes < 0 || static_cast<uint64_t>(*bytes) > binary_.size()) {
    return Invalid("input ", Quote(tensor.name()), " has binary_data_size ", *bytes, ", there are ",
                   binary_.size(), " bytes left");
  }
  raw = std::string(binary_.substr(0, static_cast<size_t>(*bytes)));
  binary_.remove_prefix(raw.size());
  return absl::OkStatus();
}

// Nothing of a datatype that no model takes, or of an input in shared memory: that is refused
// later, with the right words.
absl::StatusOr<std::string> InferMessage::ReadRaw(
    JsonView input, const inference::ModelInferRequest::InferInputTensor& tensor) {
  const std::optional<JsonView> data = input.Find("data");
  if (!data || !IsTaken(tensor.datatype())) return std::string();
  if (data->kind() != Kind::kArray) return WrongJsonType("data", "an array", *data);
  DataReader reader(tensor.datatype(), kMaxRowTexts * head_.max_sequences);
  ATTENDANT_ASSIGN_OR_RETURN(std::string raw, reader.Read(*data));
  ATTENDANT_RETURN_IF_ERROR(CheckElements(tensor, reader.elements()));
  return raw;
}

absl::Status InferMessage::ReadOutput(JsonView output) {
  auto& wanted = *request_.add_outputs();
  ATTENDANT_RETURN_IF_ERROR(output.Read("name", *wanted.mutable_name()));
  Parameters& parameters = *wanted.mutable_parameters();
  ATTENDANT_RETURN_IF_ERROR(ReadParameters(output, parameters));
  std::optional<bool> binary;
  ATTENDANT_RETURN_IF_ERROR(Take(parameters, "binary_data",
                                 &inference::InferParameter::has_bool_param,
                                 &inference::InferParameter::bool_param, binary));
  form_.outputs[wanted.name()] = binary.value_or(form_.binary);
  return absl::OkStatus();
}

}  // namespace attendant
