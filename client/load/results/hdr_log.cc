// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/hdr_log.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

// The low nibbles but one say "V2" and "V2, compressed"; 0x10 is part of every V2 cookie.
constexpr uint32_t kCookie = 0x1c849303 | 0x10;
constexpr uint32_t kCompressedCookie = 0x1c849304 | 0x10;
constexpr double kNsPerMs = 1e6;

template <typename T>
void AppendBigEndian(T value, std::string& out) {
  for (int shift = 8 * static_cast<int>(sizeof(T)) - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

// Seven bits to a byte, the lowest first. The ninth byte takes eight.
void AppendZigZag(int64_t value, std::string& out) {
  uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (int bytes = 1; bytes < 9 && rest >= 0x80; ++bytes) {
    out.push_back(static_cast<char>((rest & 0x7f) | 0x80));
    rest >>= 7;
  }
  out.push_back(static_cast<char>(rest));
}

std::string Counts(const Histogram& histogram) {
  std::string out;
  int64_t zeros = 0;
  for (int64_t count : histogram.buckets()) {
    if (count == 0) {
      ++zeros;
      continue;
    }
    if (zeros > 0) AppendZigZag(-zeros, out);
    zeros = 0;
    AppendZigZag(count, out);
  }
  return out;
}

std::string Compress(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  // With room for compressBound() bytes it can only run out of memory, as std::string would.
  compress(reinterpret_cast<Bytef*>(out.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()));
  out.resize(size);
  return out;
}

// "START,LENGTH,MAX,HISTOGRAM": seconds, seconds, milliseconds.
std::string LogLine(absl::Duration start, absl::Duration length, const Histogram& histogram) {
  return absl::StrFormat("%.3f,%.3f,%.3f,%s\n", absl::ToDoubleSeconds(start),
                         absl::ToDoubleSeconds(length),
                         static_cast<double>(histogram.max()) / kNsPerMs, EncodeHdr(histogram));
}

}  // namespace

std::string EncodeHdr(const Histogram& histogram) {
  const std::string counts = Counts(histogram);
  std::string plain;
  AppendBigEndian(kCookie, plain);
  AppendBigEndian(static_cast<uint32_t>(counts.size()), plain);
  AppendBigEndian(uint32_t{0}, plain);  // normalizing index offset
  AppendBigEndian(static_cast<uint32_t>(Histogram::kSignificantDigits), plain);
  AppendBigEndian(uint64_t{1}, plain);  // lowest value that can be told from 0
  AppendBigEndian(static_cast<uint64_t>(Histogram::kMaxValue), plain);
  AppendBigEndian(uint64_t{0x3ff0000000000000}, plain);  // integer to double: 1.0
  const std::string compressed = Compress(plain + counts);
  std::string out;
  AppendBigEndian(kCompressedCookie, out);
  AppendBigEndian(static_cast<uint32_t>(compressed.size()), out);
  return absl::Base64Escape(out + compressed);
}

void WriteHdrLog(absl::Time start, const LoadDetail& detail, absl::Duration window,
                 std::ostream& out) {
  const double epoch_s = absl::ToDoubleSeconds(start - absl::UnixEpoch());
  out << "#[Histogram log format version 1.3]\n"
      << "#[Response times in nanoseconds; Interval_Max in milliseconds]\n"
      << absl::StrFormat("#[StartTime: %.3f (seconds since epoch), %s]\n", epoch_s,
                         absl::FormatTime(absl::RFC3339_sec, start, absl::UTCTimeZone()))
      << R"("StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram")"
      << "\n";
  absl::Duration at = absl::ZeroDuration();
  for (const Interval& interval : detail.series.intervals()) {
    const absl::Duration length = std::min(detail.series.length(), window - at);
    if (interval.response_ns.count() > 0) out << LogLine(at, length, interval.response_ns);
    at += detail.series.length();
  }
  if (detail.service_ns.count() > 0) {
    out << "Tag=service," << LogLine(absl::ZeroDuration(), window, detail.service_ns);
  }
}

}  // namespace attendant::client
