// SPDX-License-Identifier: Apache-2.0
#include "server/access/trace_context.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace attendant {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;
constexpr size_t kMaxTraceStateBytes = 512;
constexpr size_t kMaxTraceStateMembers = 32;

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
constexpr size_t kTraceParentBytes = 55;

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
  });
}

// REQUIRES: IsLowerHex, and at most 16 digits.
uint64_t FromHex(absl::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) {
    value = value << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return value;
}

bool IsKeyCharacter(unsigned char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-' || c == '*' ||
         c == '/' || c == '@';
}

// key=value, of a tracestate's list.
bool IsMember(absl::string_view member) {
  const size_t equals = member.find('=');
  if (equals == absl::string_view::npos || equals == 0 || equals > 256) return false;
  const absl::string_view key = member.substr(0, equals);
  const absl::string_view value = member.substr(equals + 1);
  return std::all_of(key.begin(), key.end(), IsKeyCharacter) && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](unsigned char c) {
           return absl::ascii_isprint(c) && c != '=' && c != ',';
         });
}

// The members without what stands around them, where a tab may: gRPC ends the process that would
// send one. Empty for a list that is not valid.
std::string ReadTraceState(absl::string_view state) {
  if (state.size() > kMaxTraceStateBytes) return "";
  std::vector<absl::string_view> members;
  for (const absl::string_view part : absl::StrSplit(state, ',')) {
    const absl::string_view member = absl::StripAsciiWhitespace(part);
    if (member.empty()) continue;
    if (!IsMember(member) || members.size() == kMaxTraceStateMembers) return "";
    members.push_back(member);
  }
  return absl::StrJoin(members, ",");
}

std::string Digits(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

}  // namespace

std::string TraceContext::trace_id() const {
  return absl::StrCat(Digits(trace_high), Digits(trace_low));
}

std::string TraceContext::span_id() const { return Digits(span); }

std::string TraceContext::traceparent() const {
  return absl::StrCat("00-", trace_id(), "-", span_id(), sampled ? "-01" : "-00");
}

std::optional<TraceContext> ParseTraceContext(absl::string_view traceparent,
                                              absl::string_view tracestate) {
  if (traceparent.size() < kTraceParentBytes) return std::nullopt;
  const absl::string_view version = traceparent.substr(0, 2);
  const absl::string_view trace = traceparent.substr(3, 32);
  const absl::string_view span = traceparent.substr(36, 16);
  const absl::string_view flags = traceparent.substr(53, 2);
  for (const absl::string_view part : {version, trace, span, flags}) {
    if (!IsLowerHex(part)) return std::nullopt;
  }
  for (const size_t dash : {size_t{2}, size_t{35}, size_t{52}}) {
    if (traceparent[dash] != '-') return std::nullopt;
  }
  // A later version may have more parts.
  const bool longer = traceparent.size() > kTraceParentBytes;
  if (version == "ff" || (longer && (version == "00" || traceparent[55] != '-'))) {
    return std::nullopt;
  }
  TraceContext context{.trace_high = FromHex(trace.substr(0, 16)),
                       .trace_low = FromHex(trace.substr(16)),
                       .span = FromHex(span),
                       .sampled = (FromHex(flags) & 1) != 0};
  if ((context.trace_high | context.trace_low) == 0 || context.span == 0) return std::nullopt;
  context.state = ReadTraceState(tracestate);
  return context;
}

bool IsRequestId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxRequestIdBytes &&
         std::all_of(id.begin(), id.end(), absl::ascii_isprint);
}

}  // namespace attendant
