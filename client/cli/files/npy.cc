// SPDX-License-Identifier: Apache-2.0
#include "client/cli/files/npy.h"

#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/files/output_file.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxNpyHeaderBytes = 1 << 16;
constexpr size_t kMaxRank = 32;       // NumPy's own limit
constexpr size_t kPreludeBytes = 10;  // magic, version, header size of version 1
constexpr size_t kAlignment = 64;

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

  bool complete() const { return descr && fortran_order && shape; }
};

// Reads the one Python literal that NumPy writes: a dict of 'descr', 'fortran_order' and 'shape',
// in any order. NumPy would evaluate other literals too; no file needs them.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : rest_(text) {}

  bool Read(Header& header) {
    if (!Take("{")) return false;
    while (!Take("}")) {
      std::string key;
      if (!ReadString(key) || !Take(":") || !ReadField(key, header)) return false;
      if (!Take(",") && !Peek("}")) return false;
    }
    SkipSpaces();
    return rest_.empty() && header.complete();
  }

 private:
  void SkipSpaces() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool Peek(absl::string_view token) {
    SkipSpaces();
    return absl::StartsWith(rest_, token);
  }
  bool Take(absl::string_view token) {
    if (!Peek(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  bool ReadString(std::string& value) {
    SkipSpaces();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return false;
    value = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value.find('\\') == std::string::npos;
  }

  bool ReadField(const std::string& key, Header& header) {
    if (key == "descr" && !header.descr) return ReadString(header.descr.emplace());
    if (key == "shape" && !header.shape) return ReadShape(header.shape.emplace());
    if (key != "fortran_order" || header.fortran_order) return false;
    const bool is_true = Take("True");
    header.fortran_order = is_true;
    return is_true || Take("False");
  }

  bool ReadShape(std::vector<int64_t>& shape) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      SkipSpaces();
      size_t digits = 0;
      while (digits < rest_.size() &&
             absl::ascii_isdigit(static_cast<unsigned char>(rest_[digits]))) {
        ++digits;
      }
      int64_t dim = 0;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &dim) || shape.size() == kMaxRank)
        return false;
      shape.push_back(dim);
      rest_.remove_prefix(digits);
      if (!Take(",") && (!Peek(")") || shape.size() == 1)) return false;  // (3) is a number
    }
    return true;
  }

  absl::string_view rest_;
};

// "<f4" and the like: byte order, kind, bytes.
std::optional<ValueFormat> ParseDescr(absl::string_view descr) {
  if (descr.size() != 3) return std::nullopt;
  ValueFormat format{.bytes = descr[2] - '0', .big_endian = descr[0] == '>'};
  if (!absl::StrContains("<>|=", descr[0])) return std::nullopt;
  const bool whole =
      format.bytes == 1 || format.bytes == 2 || format.bytes == 4 || format.bytes == 8;
  switch (descr[1]) {
    case 'b':
      format.kind = ValueFormat::Kind::kBool;
      if (format.bytes != 1) return std::nullopt;
      return format;
    case 'f':
      format.kind = ValueFormat::Kind::kFloat;
      if (!whole || format.bytes == 1) return std::nullopt;
      return format;
    case 'i':
    case 'u':
      format.kind = descr[1] == 'i' ? ValueFormat::Kind::kSigned : ValueFormat::Kind::kUnsigned;
      if (!whole) return std::nullopt;
      return format;
    default:
      return std::nullopt;
  }
}

// From Fortran order, where the first index runs fastest.
std::vector<float> ToRowMajor(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  std::vector<int64_t> index(shape.size());
  for (float value : values) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + index[d];
    out[static_cast<size_t>(offset)] = value;
    for (size_t d = 0; d < shape.size() && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
  return out;
}

std::string HeaderText(const std::vector<int64_t>& shape) {
  std::string header =
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  const size_t unpadded = kPreludeBytes + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header.push_back('\n');
  return header;
}

absl::Status WrongNpy(const std::string& name, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(name, " is not a usable .npy file: ", what));
}

// Splits a file into header and values.
absl::Status SplitFile(absl::string_view bytes, const std::string& name, absl::string_view& header,
                       absl::string_view& values) {
  if (!absl::StartsWith(bytes, kMagic)) return WrongNpy(name, "it does not begin with \\x93NUMPY");
  const size_t prelude = kMagic.size() + 2;
  if (bytes.size() < prelude) return WrongNpy(name, "it ends within its prelude");
  const int major = static_cast<unsigned char>(bytes[kMagic.size()]);
  if (major < 1 || major > 3)
    return WrongNpy(name, absl::StrCat("its version is ", major, ", not 1 to 3"));
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < prelude + length_bytes) return WrongNpy(name, "it ends within its prelude");
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[prelude + i]);
  }
  const absl::string_view rest = bytes.substr(prelude + length_bytes);
  if (length > kMaxNpyHeaderBytes) {
    return WrongNpy(
        name, absl::StrCat("its header has ", length, " bytes, the limit is ", kMaxNpyHeaderBytes));
  }
  if (length > rest.size()) return WrongNpy(name, "it ends within its header");
  header = rest.substr(0, length);
  values = rest.substr(length);
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteNpy(const std::string& path, const std::vector<int64_t>& shape,
                      std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  const std::string header = HeaderText(shape);
  const std::array<char, 4> prelude = {'\x01', '\0', static_cast<char>(header.size() & 0xff),
                                       static_cast<char>(header.size() >> 8)};
  const std::array<absl::string_view, 4> parts = {
      kMagic, absl::string_view(prelude.data(), prelude.size()), header,
      absl::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes())};
  return WriteFile(path, parts);
}

absl::StatusOr<Array> ParseNpy(absl::string_view bytes, const std::string& name) {
  absl::string_view text;
  absl::string_view data;
  ATTENDANT_RETURN_IF_ERROR(SplitFile(bytes, name, text, data));
  Header header;
  if (!HeaderReader(text).Read(header)) {
    return WrongNpy(name, "its header is not a dict of descr, fortran_order and shape");
  }
  const std::optional<ValueFormat> format = ParseDescr(*header.descr);
  if (!format.has_value()) {
    return WrongNpy(name,
                    absl::StrCat("its dtype is '", *header.descr,
                                 "', not one of booleans, floats or integers of 1 to 8 bytes"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t count, CountValues(*header.shape, name));
  const auto expected = static_cast<size_t>(count) * static_cast<size_t>(format->bytes);
  if (data.size() != expected) {
    return WrongNpy(name, absl::StrCat("it holds ", data.size(),
                                       " bytes of values, its shape and dtype say ", expected));
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<float> values, DecodeValues(data, *format, name));
  Array array{.shape = *std::move(header.shape),
              .values = std::move(values),
              .is_bool = format->kind == ValueFormat::Kind::kBool};
  if (*header.fortran_order) array.values = ToRowMajor(array.shape, array.values);
  return array;
}

absl::StatusOr<Array> ReadNpy(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes, ReadArrayFile(path));
  return ParseNpy(bytes, path);
}

}  // namespace attendant::client
