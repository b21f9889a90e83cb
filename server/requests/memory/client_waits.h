// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// A bound on the memory of calls that wait for their clients and hold none of a ByteBudget: their
// messages have not come, or their ends are not taken. A new call is never refused. Instead older
// calls give way, of the connections that hold most: a call never gives way while another
// connection holds more than twice as much as its own. Thread-safe.
class ClientWaits {
 public:
  // Ends a call with a status, whatever its client does. May be called when the call has gone.
  using Ender = absl::AnyInvocable<void(const absl::Status& status)>;
  // Makes it while the call is there. Takes no lock.
  using MakeEnder = std::function<Ender()>;

  struct Options {
    int64_t limit = 0;  // bytes; a quarter of it is for calls that are about to end
    std::function<void()> on_gave_way = nullptr;  // counts
  };
  explicit ClientWaits(Options options) : options_(std::move(options)) {}
  ClientWaits(const ClientWaits&) = delete;
  ClientWaits& operator=(const ClientWaits&) = delete;

  class Wait;

  // The calls of one connection. It outlives them.
  class Connection {
   public:
    explicit Connection(ClientWaits& waits);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    int64_t bytes() const;  // of the calls that wait now

   private:
    friend class ClientWaits;

    // All but the first is guarded by waits_.mutex_.
    ClientWaits& waits_;
    std::list<Wait*> calls_;  // the oldest first
    int64_t bytes_ = 0;       // of them
    std::list<Connection*>::iterator place_;
  };

  // The memory that one call holds while it waits for its client, in bytes of
  // ClientWaits::Options::limit.
  class Wait {
   public:
    // `connection` and what `make_ender` uses outlive this.
    Wait(Connection& connection, int64_t bytes, MakeEnder make_ender);
    ~Wait() { End().IgnoreError(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // The call waits from now on. Ends those that give way to it. Does nothing when the call waits
    // already, or has given way.
    void Begin();
    // The call waits no more. RESOURCE_EXHAUSTED: it has given way, and ends so.
    absl::Status End();

   private:
    friend class ClientWaits;

    Connection& connection_;
    const int64_t bytes_;
    const MakeEnder make_ender_;
    // Guarded by the lock of ClientWaits.
    std::list<Wait*> spare_{this};  // its node while it does not wait: no list takes memory then
    const std::list<Wait*>::iterator place_ = spare_.begin();
    bool waits_ = false;
    bool gave_way_ = false;
  };

 private:
  using Connections = std::list<Connection*>;

  int64_t room() const { return options_.limit - options_.limit / 4; }
  absl::Status GaveWay() const;
  void Add(Wait& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Wait& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // REQUIRES: a call waits. It waits no more.
  Ender TakeOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resize(Connection& connection, int64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Connections& Class(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all that wait
  // By the bits of the number of bytes that a connection holds: those of one class differ by less
  // than a factor of two.
  std::array<Connections, 64> classes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
