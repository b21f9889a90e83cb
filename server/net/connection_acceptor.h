// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/net/listening_socket.h"

namespace attendant {

// Hears what an acceptor does, on its thread. It must not block.
class ConnectionObserver {
 public:
  enum class Refusal { kLimit, kAddressLimit, kDescriptors, kEnd };  // kEnd is no reason

  virtual ~ConnectionObserver() = default;
  virtual void OnAccepted() = 0;
  virtual void OnRefused(Refusal reason) = 0;
  virtual void OnOpenChanged(int64_t open) = 0;  // at most a second late when connections close
};
absl::string_view RefusalName(ConnectionObserver::Refusal refusal);  // "limit", ...: a metric label

// Accepts TCP connections on a thread of its own and hands them to a server that is not asked when
// they close: a connection counts as open while its descriptor is the same socket.
//
// A connection above a limit is accepted and closed at once, so that its client hears of it. When
// the process has no descriptor left, the acceptor gives up one that it keeps for this moment,
// closes the waiting connection with it, and goes on: gRPC 1.51's own listener would stop for ever
// (CVE-2023-4785).
class ConnectionAcceptor {
 public:
  struct Limits {
    int64_t max_connections = 0;              // open at the same time
    int64_t max_connections_per_address = 0;  // of them from one IP address; 0: no limit
  };
  // Takes the connection over: non-blocking, close-on-exec, without Nagle's delay.
  using Serve = absl::AnyInvocable<void(FileDescriptor)>;

  // `observer` and all that `serve` uses must outlive the acceptor. UNAVAILABLE, with the system's
  // reason, when the process has no descriptor left.
  static absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> Start(ListeningSocket socket,
                                                                   const Limits& limits,
                                                                   ConnectionObserver& observer,
                                                                   Serve serve);
  // Stops accepting, and counting. Open connections live on.
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // Closes the listening socket, and frees `serve`. The observer goes on hearing how many of the
  // connections are open. REQUIRES: it is the first call.
  void StopAccepting();

  int port() const;

 private:
  struct Impl;
  explicit ConnectionAcceptor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
