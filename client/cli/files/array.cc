// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/files/array.h"
#include "client/cli/files/npy.h"
#include "client/cli/files/safetensors.h"
#include "kernels/core/base/half.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{2} << 30;
constexpr int64_t kMaxExactInteger = int64_t{1} << 24;  // f32 holds every integer up to here

uint64_t ReadBits(const char* bytes, const ValueFormat& format) {
  std::array<unsigned char, 8> little{};
  const auto size = static_cast<size_t>(format.bytes);
  std::memcpy(little.data(), bytes, size);
  if (format.big_endian) std::reverse(little.data(), little.data() + size);
  uint64_t bits;
  std::memcpy(&bits, little.data(), sizeof(bits));
  return bits;
}

absl::StatusOr<float> DecodeInteger(uint64_t bits, const ValueFormat& format,
                                    const std::string& name) {
  const int unused = 64 - 8 * format.bytes;
  const bool is_signed = format.kind == ValueFormat::Kind::kSigned;
  const auto value =
      is_signed
          ? static_cast<int64_t>(bits << unused) >> unused
          : static_cast<int64_t>(std::min<uint64_t>(bits, std::numeric_limits<int64_t>::max()));
  if (value >= -kMaxExactInteger && value <= kMaxExactInteger) return static_cast<float>(value);
  return absl::FailedPreconditionError(
      absl::StrCat(name, " has the integer ", value, ", which f32 does not hold: store floats"));
}

absl::StatusOr<float> DecodeValue(uint64_t bits, const ValueFormat& format,
                                  const std::string& name) {
  switch (format.kind) {
    case ValueFormat::Kind::kBool:
      if (bits <= 1) return static_cast<float>(bits);
      return absl::FailedPreconditionError(
          absl::StrCat(name, " has the truth value ", bits, ", which is neither 0 nor 1"));
    case ValueFormat::Kind::kBf16:
      return FromBf16(static_cast<uint16_t>(bits));
    case ValueFormat::Kind::kFloat:
      if (format.bytes == 2) return FromF16(static_cast<uint16_t>(bits));
      if (format.bytes == 4) return std::bit_cast<float>(static_cast<uint32_t>(bits));
      return static_cast<float>(std::bit_cast<double>(bits));
    case ValueFormat::Kind::kSigned:
    case ValueFormat::Kind::kUnsigned:
      break;
  }
  return DecodeInteger(bits, format, name);
}

}  // namespace

absl::StatusOr<int64_t> CountValues(const std::vector<int64_t>& shape, const std::string& name) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && count > kMaxFileBytes / dim)) {
      return absl::FailedPreconditionError(absl::StrCat(
          name, " has shape [", absl::StrJoin(shape, ", "), "], which cannot be read"));
    }
    count *= dim;
  }
  return count;
}

absl::StatusOr<std::vector<float>> DecodeValues(absl::string_view bytes, const ValueFormat& format,
                                                const std::string& name) {
  const auto size = static_cast<size_t>(format.bytes);
  std::vector<float> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const float value, DecodeValue(ReadBits(bytes.data() + i * size, format), format, name));
    values[i] = value;
  }
  return values;
}

absl::StatusOr<std::string> ReadArrayFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("there is no file ", path));
  }
  if (info.st_size > kMaxFileBytes) {
    return absl::FailedPreconditionError(absl::StrCat("the file ", path, " has ", info.st_size,
                                                      " bytes, the limit is ", kMaxFileBytes));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.gcount() == static_cast<std::streamsize>(bytes.size())) return bytes;
  return absl::FailedPreconditionError(absl::StrCat("the file ", path, " cannot be read"));
}

absl::StatusOr<Array> LoadArray(const std::string& argument, const std::string& default_name) {
  constexpr absl::string_view kSafetensors = ".safetensors";
  if (absl::EndsWith(argument, kSafetensors)) return ReadSafetensor(argument, default_name);
  const size_t end = argument.rfind(".safetensors:");
  if (end == std::string::npos) return ReadNpy(argument);
  const size_t colon = end + kSafetensors.size();
  return ReadSafetensor(argument.substr(0, colon), argument.substr(colon + 1));
}

absl::StatusOr<Tensor> ToTensor(Array array, const std::string& name) {
  if (!array.is_bool) {
    return Tensor{.shape = std::move(array.shape), .values = std::move(array.values)};
  }
  return absl::FailedPreconditionError(
      absl::StrCat(name, " holds truth values, it must hold numbers"));
}

absl::StatusOr<BoolTensor> ToBoolTensor(const Array& array, const std::string& name) {
  BoolTensor tensor{.shape = array.shape};
  for (float value : array.values) {
    if (!array.is_bool && value != 0 && value != 1) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, " has the value ", value, ", it must hold truth values"));
    }
    tensor.values.push_back(value != 0);
  }
  return tensor;
}

}  // namespace attendant::client
