// SPDX-License-Identifier: Apache-2.0
#include "server/http/gzip.h"

#include <zlib.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/core/check.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little, "gzip's numbers are little-endian");

constexpr int kGzipWindow = 15 + 16;  // the largest window; 16: zlib reads and writes gzip
constexpr int kMemoryLevel = 8;
constexpr size_t kLeastBytes = 18;      // head and tail of a member
constexpr uint64_t kMostGrowth = 1032;  // of deflate: 258 bytes for two bits

absl::Status Damaged() { return absl::InvalidArgumentError("the body is not valid gzip"); }

// zlib's interface takes what it reads as not const.
Bytef* Input(absl::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

std::string Gzip(absl::string_view text) {
  z_stream stream{};
  ATTENDANT_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                               Z_DEFAULT_STRATEGY) == Z_OK);
  std::string member(deflateBound(&stream, text.size()), '\0');
  stream.next_in = Input(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(member.data());
  stream.avail_out = static_cast<uInt>(member.size());
  ATTENDANT_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  member.resize(stream.total_out);
  deflateEnd(&stream);
  return member;
}

absl::StatusOr<int64_t> GunzippedBytes(absl::string_view member) {
  if (member.size() < kLeastBytes || member.substr(0, 2) != "\x1f\x8b") return Damaged();
  uint32_t bytes = 0;
  std::memcpy(&bytes, member.data() + member.size() - sizeof(bytes), sizeof(bytes));
  if (bytes > kMostGrowth * member.size()) return Damaged();
  return bytes;
}

absl::StatusOr<std::string> Gunzip(absl::string_view member, int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  z_stream stream{};
  stream.next_in = Input(member);
  stream.avail_in = static_cast<uInt>(member.size());
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return absl::ResourceExhaustedError("no memory");
  // With no room at all zlib would not look at an empty member.
  Bytef none = 0;
  stream.next_out = text.empty() ? &none : reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = text.empty() ? 1 : static_cast<uInt>(text.size());
  const int end = inflate(&stream, Z_FINISH);
  const bool whole = end == Z_STREAM_END && stream.total_out == text.size() && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) return Damaged();
  return text;
}

}  // namespace attendant
