// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "server/batching/queued_request.h"

namespace attendant {

// The waiting requests of one priority in the order of service: client after client, and each
// client's in turn. Clients share by deficit round robin, with debts: the client at the front
// begins requests until they have taken a quantum of tokens, and then goes behind the others. The
// first request that it has begun and that a batch had no room for goes on before that; what it
// takes beyond the quantum, the client lacks in its next turns. A client that has no request here
// any more is forgotten, and its debt with it. While there is one client, turns change nothing.
//
// Owns nothing. Each function is O(log requests). Thread-compatible.
class ServiceOrder {
 public:
  // A place between two requests. By default, before them all.
  struct Position {
    uint64_t client = 0;
    uint64_t request = 0;
  };

  explicit ServiceOrder(int64_t quantum) : quantum_(quantum) {}

  void Add(QueuedRequest& request);  // at the end of its client's; a new client at the end of all
  void Remove(QueuedRequest& request);
  void MoveToEnd(QueuedRequest& request);  // of its client's; it is no longer begun

  QueuedRequest* After(Position position) const;             // null: no more
  Position PositionOf(const QueuedRequest& request) const;   // right behind it
  Position EndOfClient(const QueuedRequest& request) const;  // behind all of its client's
  bool MayTake(const QueuedRequest& request) const;          // it is begun, or may begin
  void Spend(const QueuedRequest& request, int64_t tokens);  // of its client's turn
  void SetBegun(QueuedRequest& request, bool begun);  // only the first of its client's is begun
  // Ends the turn of its client, which gets a quantum for the next one. False: nothing happened,
  // since a request that it has begun keeps its place before other clients.
  bool EndTurn(const QueuedRequest& request);

 private:
  using Requests = absl::btree_map<uint64_t, QueuedRequest*>;  // by QueuePlace::turn
  struct Client {
    int64_t balance = 0;                   // tokens that it may still take in this turn
    const QueuedRequest* begun = nullptr;  // it goes on, also when the turn is used up
    Requests requests;                     // not empty
  };
  using Clients = std::map<uint64_t, Client>;  // by turn

  Client& Of(const QueuedRequest& request) { return clients_.at(turns_.at(request.client)); }
  const Client& Of(const QueuedRequest& request) const {
    return clients_.at(turns_.at(request.client));
  }

  const int64_t quantum_;
  uint64_t last_turn_ = 0;  // given to a client or to a request
  Clients clients_;
  absl::flat_hash_map<uint64_t, uint64_t> turns_;  // by QueuedRequest::client
};

}  // namespace attendant
