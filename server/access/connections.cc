// SPDX-License-Identifier: Apache-2.0
#include "server/access/connections.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Counts in slots of ten seconds; the current slot and the five before it are the last minute.
class ConnectionTable::Connection {
 public:
  Connection(std::string peer, const Clock& clock)
      : peer_(std::move(peer)), clock_(clock), since_(clock()), last_(since_) {}

  const std::string& peer() const { return peer_; }

  // Returns how many are open then.
  int64_t AddOpen(int64_t delta) {
    absl::MutexLock lock(&mutex_);
    last_ = clock_();
    return open_calls_ += delta;
  }

  void Count(const Activity& activity) {
    absl::MutexLock lock(&mutex_);
    const int64_t number = clock_() / kSlotS;
    Slot& slot = slots_[static_cast<size_t>(number % kSlots)];
    if (slot.number != number) slot = {.number = number, .activity = {}};
    Add(activity, slot.activity);
  }

  bool has_open_calls() const {
    absl::MutexLock lock(&mutex_);
    return open_calls_ > 0;
  }

  bool Forgotten() const {
    absl::MutexLock lock(&mutex_);
    return open_calls_ == 0 && clock_() - last_ > kForgetAfterS;
  }

  ConnectionReport Report() const {
    absl::MutexLock lock(&mutex_);
    const int64_t now = clock_();
    ConnectionReport report{.peer = peer_, .age_s = now - since_, .open_calls = open_calls_};
    for (const Slot& slot : slots_) {
      if (slot.number > now / kSlotS - kSlots) Add(slot.activity, report.last_minute);
    }
    return report;
  }

 private:
  static constexpr int64_t kSlotS = 10;
  static constexpr int64_t kSlots = 6;
  struct Slot {
    int64_t number = -kSlots;
    Activity activity;
  };

  static void Add(const Activity& more, Activity& sum) {
    sum.requests += more.requests;
    sum.request_bytes += more.request_bytes;
    sum.response_bytes += more.response_bytes;
    sum.refused += more.refused;
  }

  const std::string peer_;
  const Clock clock_;
  const int64_t since_;
  mutable absl::Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_);  // call that began or ended
  int64_t open_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<Slot, kSlots> slots_ ABSL_GUARDED_BY(mutex_);
};

ConnectionTable::ConnectionTable(Clock clock) : clock_(std::move(clock)) {}

int64_t ConnectionTable::SteadySeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

ConnectionTable::Opened ConnectionTable::Open(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Connection>& connection = Find(peer);
  return {connection, connection->AddOpen(1)};
}

const std::shared_ptr<ConnectionTable::Connection>& ConnectionTable::Find(const std::string& peer) {
  const auto found = by_peer_.find(peer);
  if (found != by_peer_.end() && !(*found->second)->Forgotten()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return by_use_.front();
  }
  if (found != by_peer_.end()) {
    by_use_.erase(found->second);
  }
  MakeRoom();
  by_use_.push_front(std::make_shared<Connection>(peer, clock_));
  by_peer_[peer] = by_use_.begin();
  return by_use_.front();
}

// Looks at a few of the earliest, so that no call waits for long. Those with open calls come last
// again.
void ConnectionTable::MakeRoom() {
  constexpr int kLooks = 16;
  for (int i = 0; i < kLooks && by_use_.size() >= kMaxKnown; ++i) {
    if (by_use_.back()->has_open_calls()) {
      by_use_.splice(by_use_.begin(), by_use_, std::prev(by_use_.end()));
    } else {
      by_peer_.erase(by_use_.back()->peer());
      by_use_.pop_back();
    }
  }
}

std::vector<ConnectionReport> ConnectionTable::Report() const {
  std::vector<std::shared_ptr<Connection>> connections;
  {
    absl::MutexLock lock(&mutex_);
    connections.assign(by_use_.begin(), by_use_.end());
  }
  std::vector<ConnectionReport> reports;
  for (const std::shared_ptr<Connection>& connection : connections) {
    ConnectionReport report = connection->Report();
    const Activity& activity = report.last_minute;
    const bool active = report.open_calls > 0 || activity.requests > 0 || activity.refused > 0;
    if (active) reports.push_back(std::move(report));
  }
  return reports;
}

OpenCall::OpenCall(ConnectionTable& table, const std::string& peer) : opened_(table.Open(peer)) {}
OpenCall::~OpenCall() { opened_.connection->AddOpen(-1); }
const std::string& OpenCall::peer() const { return opened_.connection->peer(); }
void OpenCall::Count(const Activity& activity) const { opened_.connection->Count(activity); }

std::string ConnectionsPage(std::vector<ConnectionReport> reports) {
  constexpr size_t kTop = 16;
  using Measure = int64_t (*)(const ConnectionReport&);
  constexpr Measure kMeasures[] = {
      [](const ConnectionReport& r) {
        return r.last_minute.request_bytes + r.last_minute.response_bytes;
      },
      [](const ConnectionReport& r) {
        return r.request_memory_bytes + r.response_memory_bytes + r.stream_memory_bytes +
               r.call_memory_bytes;
      },
      [](const ConnectionReport& r) { return r.last_minute.refused; },
      [](const ConnectionReport& r) { return r.open_calls; },
      [](const ConnectionReport& r) { return r.last_minute.requests; }};
  absl::flat_hash_set<std::string> chosen;
  for (const Measure measure : kMeasures) {
    std::sort(reports.begin(), reports.end(), [measure](const auto& a, const auto& b) {
      return std::pair(-measure(a), a.peer) < std::pair(-measure(b), b.peer);
    });
    for (size_t i = 0; i < std::min(kTop, reports.size()) && measure(reports[i]) > 0; ++i) {
      chosen.insert(reports[i].peer);
    }
  }
  nlohmann::ordered_json page = {{"active_connections", reports.size()},
                                 {"connections", nlohmann::ordered_json::array()}};
  for (const ConnectionReport& report : reports) {  // most requests first
    if (!chosen.contains(report.peer)) continue;
    const Activity& activity = report.last_minute;
    page["connections"].push_back({{"peer", report.peer},
                                   {"age_s", report.age_s},
                                   {"open_calls", report.open_calls},
                                   {"requests", activity.requests},
                                   {"bytes_in", activity.request_bytes},
                                   {"bytes_out", activity.response_bytes},
                                   {"refused", activity.refused},
                                   {"request_memory_bytes", report.request_memory_bytes},
                                   {"response_memory_bytes", report.response_memory_bytes},
                                   {"stream_memory_bytes", report.stream_memory_bytes},
                                   {"call_memory_bytes", report.call_memory_bytes}});
  }
  return page.dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace attendant
