// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// The counts of a connection.
struct Activity {
  int64_t requests = 0;  // messages of streams too
  int64_t request_bytes = 0;
  int64_t response_bytes = 0;
  int64_t refused = 0;  // of the requests, and calls: a limit, a wrong key, a wrong message
};

struct ConnectionReport {
  std::string peer = {};
  int64_t age_s = 0;  // since its first call
  int64_t open_calls = 0;
  Activity last_minute = {};  // 50 to 60 s
  // The bytes that the connection holds of each memory budget; the budgets fill them in.
  int64_t request_memory_bytes = 0;
  int64_t response_memory_bytes = 0;
  int64_t stream_memory_bytes = 0;
  int64_t call_memory_bytes = 0;
};

// The connections that have called lately, by peer: all that have open calls. Of others it knows
// those that fit into kMaxKnown; a new one takes the place of the one that called earliest.
// Thread-safe.
class ConnectionTable {
 public:
  static constexpr size_t kMaxKnown = 4096;
  // Seconds of a clock that only goes forward.
  using Clock = std::function<int64_t()>;

  explicit ConnectionTable(Clock clock = SteadySeconds);

  // One for each known connection that has an open call or did something in the last minute.
  std::vector<ConnectionReport> Report() const;

 private:
  friend class OpenCall;
  class Connection;

  static int64_t SteadySeconds();

  // A connection and its open calls, the new one among them.
  struct Opened {
    std::shared_ptr<Connection> connection;
    int64_t open_calls;
  };
  // Counts a call that begins. Under one lock: a connection without open calls may be forgotten.
  Opened Open(const std::string& peer);
  // The connection of a peer, made if the table does not have it.
  const std::shared_ptr<Connection>& Find(const std::string& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A peer that was silent for so long is a new connection of the same port.
  static constexpr int64_t kForgetAfterS = 600;

  using Order = std::list<std::shared_ptr<Connection>>;

  const Clock clock_;
  mutable absl::Mutex mutex_;
  Order by_use_ ABSL_GUARDED_BY(mutex_);  // the latest first
  absl::flat_hash_map<std::string, Order::iterator> by_peer_ ABSL_GUARDED_BY(mutex_);
};

// A call of a connection: open until it is destroyed. It may outlive the table. Thread-safe.
class OpenCall {
 public:
  OpenCall(ConnectionTable& table, const std::string& peer);
  ~OpenCall();
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

  const std::string& peer() const;
  // Of the connection when the call began, with it.
  int64_t open_calls() const { return opened_.open_calls; }
  void Count(const Activity& activity) const;

 private:
  const ConnectionTable::Opened opened_;
};

// The first 16 connections by requests, by bytes and by refusals in the last minute, by memory, and
// by open calls, as JSON.
std::string ConnectionsPage(std::vector<ConnectionReport> reports);

}  // namespace attendant
