// SPDX-License-Identifier: Apache-2.0
#include "client/cli/files/npy.h"

#include <bit>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant::client {
namespace {

constexpr size_t kPreludeBytes = 10;  // magic, version, header size
constexpr size_t kAlignment = 64;

std::string Header(const std::vector<int64_t>& shape) {
  std::string header =
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  const size_t unpadded = kPreludeBytes + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header.push_back('\n');
  return header;
}

}  // namespace

absl::Status WriteNpy(const std::string& path, const std::vector<int64_t>& shape,
                      std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  const std::string header = Header(shape);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() & 0xff)
       << static_cast<char>(header.size() >> 8) << header;
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
  file.close();
  if (file) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot write the file ", path));
}

}  // namespace attendant::client
