// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/safetensors.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

constexpr int64_t kLengthBytes = 8;
// The format's own limit. The number of values is ours: real headers hold nine for each tensor, and
// a parsed value takes some 40 bytes where `0,` takes two.
constexpr JsonLimits kHeaderLimits = {
    .max_bytes = 100'000'000, .max_values = int64_t{1} << 20, .max_depth = 4};

struct DTypeSize {
  absl::string_view name;
  int64_t bytes;
};

constexpr DTypeSize kDTypes[] = {
    {"BOOL", 1},        {"U8", 1},      {"I8", 1},          {"F8_E5M2", 1}, {"F8_E4M3", 1},
    {"F8_E5M2FNUZ", 1}, {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"I16", 2},     {"U16", 2},
    {"F16", 2},         {"BF16", 2},    {"I32", 4},         {"U32", 4},     {"F32", 4},
    {"C64", 8},         {"F64", 8},     {"I64", 8},         {"U64", 8},
};

// A tensor's header entry: where its bytes lie, from the data's start.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
};

absl::Status Bad(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

absl::Status ReadIntegers(const JsonNode& node, std::vector<int64_t>& values) {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<JsonNode> elements, node.Elements());
  for (const JsonNode& element : elements) {
    int64_t value = 0;
    ATTENDANT_RETURN_IF_ERROR(element.Get(value));
    if (value < 0) return Bad(element.where(), absl::StrCat("is ", value, ", expected >= 0"));
    values.push_back(value);
  }
  return absl::OkStatus();
}

absl::Status ReadIntegers(const JsonNode& entry, absl::string_view field,
                          std::vector<int64_t>& values) {
  absl::StatusOr<JsonNode> node = entry.Field(field);
  return node.ok() ? ReadIntegers(*node, values) : node.status();
}

absl::StatusOr<int64_t> DTypeBytes(const JsonNode& entry, const std::string& dtype) {
  for (const DTypeSize& known : kDTypes) {
    if (known.name == dtype) return known.bytes;
  }
  return Bad(entry.where(), absl::StrCat("unknown dtype ", Quoted(dtype)));
}

absl::StatusOr<int64_t> ShapeBytes(const JsonNode& entry, const StoredTensor& tensor) {
  ATTENDANT_ASSIGN_OR_RETURN(int64_t bytes, DTypeBytes(entry, tensor.dtype));
  for (int64_t dim : tensor.dims) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) {
      return Bad(entry.where(), absl::StrCat("shape [", absl::StrJoin(tensor.dims, ", "),
                                             "] has more bytes than 64 bits can count"));
    }
  }
  return bytes;
}

absl::StatusOr<Extent> ReadExtent(const JsonNode& entry, int64_t data_bytes) {
  std::vector<int64_t> offsets;
  ATTENDANT_RETURN_IF_ERROR(ReadIntegers(entry, "data_offsets", offsets));
  if (offsets.size() != 2) {
    return Bad(entry.where(),
               absl::StrCat("data_offsets has ", offsets.size(), " numbers, expected 2"));
  }
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    return Bad(entry.where(),
               absl::StrCat("data_offsets [", offsets[0], ", ", offsets[1],
                            "] do not lie in the file's ", data_bytes, " bytes of data"));
  }
  return Extent{offsets[0], offsets[1]};
}

absl::StatusOr<StoredTensor> ReadTensor(const JsonNode& entry, const std::string& name,
                                        std::span<const std::byte> data) {
  StoredTensor tensor;
  tensor.name = name;
  ATTENDANT_RETURN_IF_ERROR(entry.Require("dtype", tensor.dtype));
  ATTENDANT_RETURN_IF_ERROR(ReadIntegers(entry, "shape", tensor.dims));
  ATTENDANT_ASSIGN_OR_RETURN(Extent extent, ReadExtent(entry, static_cast<int64_t>(data.size())));
  ATTENDANT_ASSIGN_OR_RETURN(int64_t bytes, ShapeBytes(entry, tensor));
  if (extent.end - extent.begin != bytes) {
    return Bad(entry.where(),
               absl::StrCat("shape [", absl::StrJoin(tensor.dims, ", "), "] of ", tensor.dtype,
                            " takes ", bytes, " bytes, data_offsets [", extent.begin, ", ",
                            extent.end, "] hold ", extent.end - extent.begin));
  }
  tensor.data = data.subspan(static_cast<size_t>(extent.begin), static_cast<size_t>(bytes));
  return tensor;
}

absl::Status CheckMetadata(const JsonNode& metadata) {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> names, metadata.FieldNames());
  for (const std::string& name : names) {
    std::string value;
    ATTENDANT_RETURN_IF_ERROR(metadata.Read(name, value));
  }
  return absl::OkStatus();
}

// Laid end to end, the tensors must be the data, all of it.
absl::Status CheckCoverage(const std::string& path, const std::vector<StoredTensor>& tensors,
                           std::span<const std::byte> data) {
  std::vector<const StoredTensor*> by_place;
  for (const StoredTensor& tensor : tensors) by_place.push_back(&tensor);
  std::sort(by_place.begin(), by_place.end(), [](const StoredTensor* a, const StoredTensor* b) {
    // An empty tensor shares its place with the next one and comes before it.
    return std::pair(a->data.data(), a->data.size()) < std::pair(b->data.data(), b->data.size());
  });
  const std::byte* expected = data.data();
  for (const StoredTensor* tensor : by_place) {
    if (tensor->data.data() != expected) {
      return Bad(path, absl::StrCat("tensor ", Quoted(tensor->name), " starts at data byte ",
                                    tensor->data.data() - data.data(),
                                    ", the one before it ends at ", expected - data.data()));
    }
    expected += tensor->data.size();
  }
  if (expected == data.data() + data.size()) return absl::OkStatus();
  return Bad(path, absl::StrCat("the tensors end at data byte ", expected - data.data(), " of ",
                                data.size()));
}

absl::StatusOr<std::vector<StoredTensor>> ReadTensors(const std::string& path,
                                                      const JsonNode& header,
                                                      std::span<const std::byte> data) {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> names, header.FieldNames());
  std::vector<StoredTensor> tensors;
  for (const std::string& name : names) {
    ATTENDANT_ASSIGN_OR_RETURN(JsonNode entry, header.Field(name));
    if (name == "__metadata__") {
      ATTENDANT_RETURN_IF_ERROR(CheckMetadata(entry));
      continue;
    }
    ATTENDANT_ASSIGN_OR_RETURN(StoredTensor tensor, ReadTensor(entry, name, data));
    tensors.push_back(std::move(tensor));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckCoverage(path, tensors, data));
  return tensors;
}

uint64_t ReadLittleEndian64(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = sizeof(value); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

// The header's text, once its length has been checked against the file and the limit.
absl::StatusOr<absl::string_view> HeaderText(const std::string& path,
                                             std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return Bad(path, absl::StrCat("has ", file.size(), " bytes, a safetensors file at least ",
                                  kLengthBytes));
  }
  const uint64_t header_bytes = ReadLittleEndian64(file);
  if (header_bytes > static_cast<uint64_t>(kHeaderLimits.max_bytes)) {
    return Bad(path, absl::StrCat("announces a header of ", header_bytes, " bytes, the limit is ",
                                  kHeaderLimits.max_bytes));
  }
  if (header_bytes > file.size() - kLengthBytes) {
    return Bad(path, absl::StrCat("announces a header of ", header_bytes, " bytes, ",
                                  file.size() - kLengthBytes, " follow"));
  }
  absl::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, header_bytes);
  if (text.empty() || text.front() != '{') return Bad(path, "the header does not begin with `{`");
  return text;
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  ATTENDANT_ASSIGN_OR_RETURN(absl::string_view text, HeaderText(path, file.bytes()));
  ATTENDANT_ASSIGN_OR_RETURN(JsonNode header, ParseJson(text, path, kHeaderLimits));
  ATTENDANT_ASSIGN_OR_RETURN(
      std::vector<StoredTensor> tensors,
      ReadTensors(path, header, file.bytes().subspan(kLengthBytes + text.size())));
  return SafetensorsFile(path, std::move(file), std::move(tensors));
}

const StoredTensor* SafetensorsFile::Find(absl::string_view name) const {
  auto found = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                [](const StoredTensor& tensor, absl::string_view wanted) {
                                  return absl::string_view(tensor.name) < wanted;
                                });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace attendant
