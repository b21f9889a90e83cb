// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "server/batching/batch_policy.h"
#include "server/batching/cost_model.h"
#include "server/batching/queued_request.h"

namespace attendant {

// The requests of a client in a queue.
struct ClientTotals {
  int64_t requests = 0;
  int64_t tokens = 0;  // that wait
};

// Sums of the requests that wait in one priority of a queue. Thread-compatible.
class LevelTotals {
 public:
  explicit LevelTotals(const BatchPolicy& policy) : policy_(policy) {}

  // Adds the request with its waiting sequences `sign` times. O(1).
  void Count(const QueuedRequest& request, int64_t sign);

  int64_t requests() const { return requests_; }
  const BatchShape& all() const { return all_; }  // without squares
  ClientTotals Of(uint64_t client) const;

  // True if the next turns of requests whose next sequence is long have more tokens than the next
  // turns of all others.
  bool MostlyLong() const { return long_turns_ > short_turns_; }

  // The part that goes into batches before the last sequence of a new request of `client` with so
  // many tokens. About, and without squares. O(1).
  BatchShape AheadOf(uint64_t client, int64_t tokens) const;

 private:
  static constexpr size_t kBits = 64;
  struct RequestClass {
    int64_t requests = 0;
    BatchShape all;  // without squares
  };
  struct ClientClass {
    int64_t clients = 0, requests = 0, tokens = 0;
  };

  void CountClass(const ClientTotals& client, int64_t sign);
  BatchShape AheadByRequests(int64_t tokens) const;  // as if there was one client
  int64_t AheadByClients(uint64_t client, int64_t tokens) const;

  const BatchPolicy policy_;
  int64_t requests_ = 0;
  BatchShape all_;
  int64_t long_turns_ = 0;   // BatchPolicy::Turn of requests that go on with a long sequence
  int64_t short_turns_ = 0;  // and of the others
  // By the number of bits of the waiting tokens: of a request, of a client.
  std::array<RequestClass, kBits> request_classes_{};
  std::array<ClientClass, kBits> client_classes_{};
  absl::flat_hash_map<uint64_t, ClientTotals> clients_;  // without empty ones
};

}  // namespace attendant
