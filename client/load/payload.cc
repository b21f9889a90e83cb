// SPDX-License-Identifier: Apache-2.0
#include "client/load/payload.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/lines.h"
#include "client/utf8.h"
#include "client/wire.h"

namespace attendant::client {
namespace {

constexpr size_t kMaxRequests = 1024;
// Enough for the lengths to average out, and small in memory.
constexpr size_t kMaxTokens = 4 << 20;

std::vector<Payload> TextPayloads(const PayloadSpec& spec, Random& random) {
  std::vector<size_t> order(spec.texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i) {
    const auto other = static_cast<size_t>(random.Integer(0, static_cast<int64_t>(i) - 1));
    std::swap(order[i - 1], order[other]);
  }
  const size_t batch = static_cast<size_t>(spec.batch);
  std::vector<Payload> payloads((order.size() + batch - 1) / batch);
  for (size_t i = 0; i < payloads.size() * batch; ++i) {
    payloads[i / batch].texts.push_back(spec.texts[order[i % order.size()]]);
  }
  return payloads;
}

std::vector<int32_t> RandomIds(int64_t len, int64_t vocab, Random& random) {
  std::vector<int32_t> ids(static_cast<size_t>(len));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.Integer(0, vocab - 1));
  return ids;
}

// The tokens of an entry are shared out evenly between its sequences.
std::vector<Payload> TracePayloads(const PayloadSpec& spec, Random& random) {
  std::vector<Payload> payloads;
  for (const TraceEntry& entry : spec.trace) {
    Payload& payload = payloads.emplace_back();
    if (!entry.text.empty()) {
      payload.texts.push_back(entry.text);
      continue;
    }
    for (int64_t i = 0; i < entry.sequences; ++i) {
      const int64_t share = entry.tokens / entry.sequences;
      const int64_t len = share + (i < entry.tokens % entry.sequences ? 1 : 0);
      payload.ids.push_back(RandomIds(std::min(len, spec.lengths.high()), spec.vocab, random));
    }
  }
  return payloads;
}

std::vector<Payload> IdPayloads(const PayloadSpec& spec, Random& random) {
  std::vector<Payload> payloads;
  size_t tokens = 0;
  while (payloads.size() < kMaxRequests && (payloads.empty() || tokens < kMaxTokens)) {
    Payload& payload = payloads.emplace_back();
    for (int64_t i = 0; i < spec.batch; ++i) {
      payload.ids.push_back(RandomIds(spec.lengths.Sample(random), spec.vocab, random));
      tokens += payload.ids.back().size();
    }
  }
  return payloads;
}

}  // namespace

int64_t NumSequences(const Payload& payload) {
  return static_cast<int64_t>(std::max(payload.texts.size(), payload.ids.size()));
}

std::string SpellOut(const std::vector<int32_t>& ids) {
  static constexpr const char* kWords[] = {"time",  "river", "paper", "light", "house", "green",
                                           "music", "stone", "water", "seven", "small", "often"};
  return absl::StrJoin(ids, " ", [](std::string* out, int32_t id) {
    absl::StrAppend(out, kWords[static_cast<size_t>(id) % std::size(kWords)]);
  });
}

std::vector<std::string> TextsOf(const Payload& payload) {
  std::vector<std::string> texts = payload.texts;
  for (const std::vector<int32_t>& ids : payload.ids) texts.push_back(SpellOut(ids));
  return texts;
}

std::vector<RerankPayload> ToRerank(const std::vector<Payload>& payloads) {
  std::vector<RerankPayload> reranks;
  for (size_t i = 0; i < payloads.size(); ++i) {
    const Payload& next = payloads[(i + 1) % payloads.size()];
    reranks.push_back({.query = TextsOf(next).at(0), .texts = TextsOf(payloads[i])});
  }
  return reranks;
}

std::vector<Payload> MakePayloads(const PayloadSpec& spec) {
  Random random(spec.seed);
  if (!spec.trace.empty()) return TracePayloads(spec, random);
  return spec.texts.empty() ? IdPayloads(spec, random) : TextPayloads(spec, random);
}

absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> texts;
  std::string line;
  for (int64_t number = 1;; ++number) {
    const absl::StatusOr<bool> found = NextTextLine(file, number, line);
    if (!found.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("line ", number, " of ", path, " ", found.status().message()));
    }
    if (!*found) break;
    if (FindInvalidUtf8(line) != absl::string_view::npos) {
      return absl::FailedPreconditionError(
          absl::StrCat("line ", number, " of ", path, " is not valid UTF-8"));
    }
    if (!line.empty()) texts.push_back(line);
  }
  const bool is_read = file.is_open() && !file.bad();  // a folder opens, and cannot be read
  if (is_read && !texts.empty()) return texts;
  return absl::FailedPreconditionError(
      absl::StrCat("the file ", path, is_read ? " has no texts" : " cannot be read"));
}

}  // namespace attendant::client
