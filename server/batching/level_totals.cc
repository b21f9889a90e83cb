// SPDX-License-Identifier: Apache-2.0
#include "server/batching/level_totals.h"

#include <algorithm>
#include <bit>

#include "kernels/core/base/int_math.h"

namespace attendant {
namespace {

size_t ClassOf(int64_t tokens) { return std::bit_width(static_cast<uint64_t>(tokens)); }

// Adds `shape` `sign` times, without squares.
void Add(const BatchShape& shape, int64_t sign, BatchShape& sum) {
  sum.sequences += sign * shape.sequences;
  sum.tokens += sign * shape.tokens;
  sum.head_ns += sign * shape.head_ns;
}

// So many tokens of it, with their part of the rest. REQUIRES: all.tokens > 0.
BatchShape PartOf(const BatchShape& all, int64_t tokens) {
  const double part = static_cast<double>(tokens) / static_cast<double>(all.tokens);
  return {.sequences = CeilDivide(all.sequences * tokens, all.tokens),
          .tokens = tokens,
          .head_ns = static_cast<int64_t>(part * static_cast<double>(all.head_ns))};
}

}  // namespace

void LevelTotals::Count(const QueuedRequest& request, int64_t sign) {
  const BatchShape waiting = {.sequences = request.sequences_waiting(),
                              .tokens = request.tokens_waiting,
                              .head_ns = request.head_ns_waiting};
  requests_ += sign;
  Add(waiting, sign, all_);
  const bool is_long = policy_.Long(request.sequence_tokens(request.next_sequence));
  (is_long ? long_turns_ : short_turns_) += sign * policy_.Turn(request.tokens_waiting);
  RequestClass& size = request_classes_[ClassOf(request.tokens_waiting)];
  size.requests += sign;
  Add(waiting, sign, size.all);
  const auto client = clients_.try_emplace(request.client).first;
  CountClass(client->second, -1);
  client->second.requests += sign;
  client->second.tokens += sign * request.tokens_waiting;
  CountClass(client->second, 1);
  if (client->second.requests == 0) clients_.erase(client);
}

void LevelTotals::CountClass(const ClientTotals& client, int64_t sign) {
  if (client.requests == 0) return;
  ClientClass& size = client_classes_[ClassOf(client.tokens)];
  size.clients += sign;
  size.requests += sign * client.requests;
  size.tokens += sign * client.tokens;
}

ClientTotals LevelTotals::Of(uint64_t client) const {
  const auto found = clients_.find(client);
  return found == clients_.end() ? ClientTotals{} : found->second;
}

BatchShape LevelTotals::AheadOf(uint64_t client, int64_t tokens) const {
  BatchShape ahead = AheadByRequests(tokens);
  const int64_t by_clients = AheadByClients(client, tokens);
  return by_clients < ahead.tokens ? PartOf(ahead, by_clients) : ahead;
}

BatchShape LevelTotals::AheadByRequests(int64_t tokens) const {
  BatchShape sum;
  for (const RequestClass& size : request_classes_) {
    if (size.requests == 0) continue;
    const int64_t average = CeilDivide(size.all.tokens, size.requests);
    const int64_t each = policy_.TakenMeanwhile(average, tokens);
    Add(PartOf(size.all, std::min(size.all.tokens, size.requests * each)), 1, sum);
  }
  return sum;
}

// Every other client has as many turns as this one needs for all that it has, and goes a little
// beyond them: it takes whole requests.
int64_t LevelTotals::AheadByClients(uint64_t client, int64_t tokens) const {
  const ClientTotals own = Of(client);
  const int64_t turns = own.tokens / policy_.quantum() + CeilDivide(tokens, policy_.Turn(tokens));
  int64_t sum = own.tokens;
  for (size_t i = 0; i < kBits; ++i) {
    ClientClass size = client_classes_[i];
    if (own.requests > 0 && i == ClassOf(own.tokens)) {
      size.clients -= 1;
      size.requests -= own.requests;
      size.tokens -= own.tokens;
    }
    if (size.clients == 0) continue;
    const int64_t request = policy_.Turn(CeilDivide(size.tokens, size.requests));
    const int64_t each = CeilDivide(turns * policy_.quantum(), request) * request;
    sum += std::min(size.tokens, size.clients * each);
  }
  return sum;
}

}  // namespace attendant
