// SPDX-License-Identifier: Apache-2.0
#include "client/cli/files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/files/output_file.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxSafetensorsHeaderBytes = uint64_t{16} << 20;
constexpr size_t kLengthBytes = 8;

absl::Status WrongSafetensors(const std::string& name, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(name, " is not a usable safetensors file: ", what));
}

std::optional<ValueFormat> ParseDType(const std::string& dtype) {
  using Kind = ValueFormat::Kind;
  static const auto& formats = *new std::map<std::string, ValueFormat>{
      {"F64", {Kind::kFloat, 8}},    {"F32", {Kind::kFloat, 4}},    {"F16", {Kind::kFloat, 2}},
      {"BF16", {Kind::kBf16, 2}},    {"BOOL", {Kind::kBool, 1}},    {"I8", {Kind::kSigned, 1}},
      {"I16", {Kind::kSigned, 2}},   {"I32", {Kind::kSigned, 4}},   {"I64", {Kind::kSigned, 8}},
      {"U8", {Kind::kUnsigned, 1}},  {"U16", {Kind::kUnsigned, 2}}, {"U32", {Kind::kUnsigned, 4}},
      {"U64", {Kind::kUnsigned, 8}},
  };
  const auto found = formats.find(dtype);
  if (found == formats.end()) return std::nullopt;
  return found->second;
}

// A list of numbers that are not negative.
std::optional<std::vector<int64_t>> ReadNumbers(const Json& entry, const char* field) {
  const auto found = entry.find(field);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& number : *found) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > (uint64_t{1} << 62)) {
      return std::nullopt;
    }
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

absl::StatusOr<Array> ReadEntry(const Json& entry, absl::string_view data,
                                const std::string& name) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string()) {
    return WrongSafetensors(name, "it is not described by dtype, shape and data_offsets");
  }
  const auto dtype = entry["dtype"].get<std::string>();
  const std::optional<ValueFormat> format = ParseDType(dtype);
  if (!format.has_value()) return WrongSafetensors(name, absl::StrCat("its dtype is ", dtype));
  std::optional<std::vector<int64_t>> shape = ReadNumbers(entry, "shape");
  const std::optional<std::vector<int64_t>> offsets = ReadNumbers(entry, "data_offsets");
  if (!shape || !offsets || offsets->size() != 2) {
    return WrongSafetensors(name, "its shape or data_offsets are no list of numbers");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t count, CountValues(*shape, name));
  const int64_t begin = (*offsets)[0];
  const int64_t end = (*offsets)[1];
  if (begin > end || end > static_cast<int64_t>(data.size()) ||
      end - begin != count * format->bytes) {
    return WrongSafetensors(
        name, absl::StrCat("data_offsets are [", begin, ", ", end, "], its shape and dtype take ",
                           count * format->bytes, " of the file's ", data.size(), " bytes"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::vector<float> values,
      DecodeValues(data.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                   *format, name));
  return Array{.shape = *std::move(shape),
               .values = std::move(values),
               .is_bool = format->kind == ValueFormat::Kind::kBool};
}

}  // namespace

absl::StatusOr<std::map<std::string, Array>> ParseSafetensors(absl::string_view bytes,
                                                              const std::string& name) {
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) return WrongSafetensors(name, "it has no header");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxSafetensorsHeaderBytes || length > bytes.size() - kLengthBytes) {
    return WrongSafetensors(
        name, absl::StrCat("its header has ", length, " bytes, the file ", bytes.size()));
  }
  const auto header_bytes = static_cast<size_t>(length);
  const std::string text(bytes.substr(kLengthBytes, header_bytes));
  // Limits the depth of a hostile header; a valid one has at most 3 levels.
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= 3; };
  const Json header = Json::parse(text, shallow, /*allow_exceptions=*/false);
  if (!header.is_object()) return WrongSafetensors(name, "its header is not a JSON object");
  std::map<std::string, Array> tensors;
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    ATTENDANT_ASSIGN_OR_RETURN(Array array,
                               ReadEntry(entry, bytes.substr(kLengthBytes + header_bytes),
                                         absl::StrCat(name, ", tensor '", key, "'")));
    tensors.emplace(key, std::move(array));
  }
  return tensors;
}

absl::StatusOr<std::map<std::string, Array>> ReadSafetensors(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes, ReadArrayFile(path));
  return ParseSafetensors(bytes, path);
}

absl::StatusOr<Array> ReadSafetensor(const std::string& path, const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(auto tensors, ReadSafetensors(path));
  const auto found = tensors.find(name);
  if (found != tensors.end()) return std::move(found->second);
  if (tensors.size() == 1) return std::move(tensors.begin()->second);
  std::string names;
  for (const auto& [key, tensor] : tensors) absl::StrAppend(&names, names.empty() ? "" : ", ", key);
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has no tensor '", name, "'; it has ", names.empty() ? "none" : names));
}

absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, const Tensor*>& tensors) {
  Json header = Json::object();
  size_t end = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = end;
    end += tensor->values.size() * sizeof(float);
    header[name] = {{"dtype", "F32"}, {"shape", tensor->shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::vector<absl::string_view> parts = {
      absl::string_view(reinterpret_cast<const char*>(&length), sizeof(length)), text};
  for (const auto& [name, tensor] : tensors) {
    parts.emplace_back(reinterpret_cast<const char*>(tensor->values.data()),
                       tensor->values.size() * sizeof(float));
  }
  return WriteFile(path, parts);
}

}  // namespace attendant::client
