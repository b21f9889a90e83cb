// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/lengths.h"
#include "client/load/random.h"
#include "client/load/trace.h"

namespace attendant::client {

// The sequences of a load, the same for every protocol.
struct PayloadSpec {
  std::vector<std::string> texts;  // empty: token ids of the lengths below
  std::vector<TraceEntry> trace;   // not empty: these requests, cut to lengths.high()
  LengthDistribution lengths;
  int64_t vocab = 30000;  // ids are below this
  int64_t batch = 1;      // sequences in a request
  uint64_t seed = 1;
};

// One request: texts or ids.
struct Payload {
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> ids;
};

// The requests of a load, which the driver repeats: every text once, shuffled; those of the trace
// in its order; or up to 1024 requests of random ids. The same spec gives the same list. REQUIRES:
// batch >= 1, vocab >= 1.
std::vector<Payload> MakePayloads(const PayloadSpec& spec);

// The sequences of a payload. Those of a trace differ in it.
int64_t NumSequences(const Payload& payload);

// Token ids as words, one for each, for a model that takes text.
std::string SpellOut(const std::vector<int32_t>& ids);

// The texts of a payload; of one with ids, as SpellOut has them.
std::vector<std::string> TextsOf(const Payload& payload);

// The input of a reranker: it scores each text for the query.
struct RerankPayload {
  std::string query;
  std::vector<std::string> texts;
};

// The texts of each payload, with the first one of the next payload as the query.
std::vector<RerankPayload> ToRerank(const std::vector<Payload>& payloads);

// The lines of a file that are not empty. FAILED_PRECONDITION when there are none,
// or one is longer than kMaxLineBytes.
absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& path);

}  // namespace attendant::client
