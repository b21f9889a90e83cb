// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/access/call_gate.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/rpc/call/raw_service.h"

namespace attendant {

// grpc.health.v1.Health, Check and Watch, for "" (the whole server) and for each model by its name,
// whatever its version.
// gRPC's own service is not used: it says SERVING for "" as soon as the port opens. Thread-safe.
class HealthService final : public RawService<grpc::health::v1::Health> {
 public:
  // `names` and "" exist from the start and are NOT_SERVING.
  HealthService(CallGate& gate, MemoryBudgets& budgets, const std::vector<std::string>& names);

  // Sets the names of services, each with true if it serves. Other names no longer exist. REQUIRES:
  // "" is one of them.
  void Set(std::map<std::string, bool> serving);

  // Makes every name NOT_SERVING for good: Set changes nothing from now on.
  void Drain();

  // Ends every Watch after the status that it is writing, and new ones at once.
  void CloseWatches();

 private:
  class Watcher;
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  absl::Status AnswerCheck(const grpc::health::v1::HealthCheckRequest& request,
                           grpc::health::v1::HealthCheckResponse& response);
  Watcher* StartWatch(const IncomingCall& call);
  void BeginWatch(Watcher& watcher, const IncomingCall& call, bool has_message,
                  grpc::ByteBuffer& message);
  ServingStatus Status(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotifyWatchers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveWatcher(Watcher* watcher);

  absl::Mutex mutex_;  // taken before a watcher's own
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant
