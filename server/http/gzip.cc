// SPDX-License-Identifier: Apache-2.0
#include "server/http/gzip.h"

#include <zlib.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "kernels/core/check.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little, "gzip's numbers are little-endian");

constexpr int kGzipWindow = 15 + 16;  // the largest window; 16: zlib reads and writes gzip
constexpr int kMemoryLevel = 8;
constexpr size_t kLeastBytes = 18;                          // head and tail of a member
constexpr absl::string_view kMemberStart = "\x1f\x8b\x08";  // of deflate, the only method
constexpr uint64_t kMostGrowth = 1032;                      // of deflate: 258 bytes for two bits

absl::Status Damaged() { return absl::InvalidArgumentError("the body is not valid gzip"); }

// zlib's interface takes what it reads as not const.
Bytef* Input(absl::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

// The members of a gzip text, one after the other.
class Members {
 public:
  explicit Members(absl::string_view gzip) {
    stream_.next_in = Input(gzip);
    stream_.avail_in = static_cast<uInt>(gzip.size());
    ATTENDANT_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK);
  }
  ~Members() { inflateEnd(&stream_); }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  bool done() const { return stream_.avail_in == 0; }

  // Inflates the rest of a member to `room`, as far as that holds it. Returns the bytes written.
  // `whole`: the member is, and the next one follows. Nothing for a damaged one.
  std::optional<size_t> Inflate(std::span<char> room, bool& whole) {
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(room.size());
    const int end = inflate(&stream_, Z_NO_FLUSH);
    whole = end == Z_STREAM_END;
    if (!whole && (end != Z_OK || stream_.avail_out > 0)) return std::nullopt;
    if (whole) inflateReset(&stream_);
    return room.size() - stream_.avail_out;
  }

 private:
  z_stream stream_{};
};

absl::StatusOr<int64_t> CountMembers(absl::string_view gzip, int64_t most) {
  std::array<char, 16384> dropped;
  Members members(gzip);
  int64_t bytes = 0;
  bool whole = false;
  while (bytes <= most && !(whole && members.done())) {
    const std::optional<size_t> written = members.Inflate(dropped, whole);
    if (!written) return Damaged();
    bytes += static_cast<int64_t>(*written);
  }
  return bytes;
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

absl::StatusOr<int64_t> GunzippedBytes(absl::string_view gzip, int64_t most) {
  if (gzip.size() < kLeastBytes || gzip.substr(0, 2) != kMemberStart.substr(0, 2)) return Damaged();
  if (gzip.find(kMemberStart, kLeastBytes) != absl::string_view::npos) {
    return CountMembers(gzip, most);
  }
  uint32_t bytes = 0;
  std::memcpy(&bytes, gzip.data() + gzip.size() - sizeof(bytes), sizeof(bytes));
  if (bytes > kMostGrowth * gzip.size()) return Damaged();
  return bytes;
}

absl::StatusOr<std::string> Gunzip(absl::string_view gzip, int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  Members members(gzip);
  std::span<char> room = text;
  do {
    // With no room at all zlib would not look at an empty member.
    char none = 0;
    const bool full = room.empty();
    bool whole = false;
    const std::optional<size_t> written =
        members.Inflate(full ? std::span<char>(&none, 1) : room, whole);
    if (!written || !whole || (full && *written > 0)) return Damaged();
    if (!full) room = room.subspan(*written);
  } while (!members.done());
  if (!room.empty()) return Damaged();
  return text;
}

}  // namespace attendant
