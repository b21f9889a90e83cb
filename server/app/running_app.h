// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/access/access_log.h"
#include "server/access/call_gate.h"
#include "server/access/key_store.h"
#include "server/app/app.h"
#include "server/app/app_options.h"
#include "server/app/grpc_server.h"
#include "server/app/grpc_services.h"
#include "server/app/http_server.h"
#include "server/app/model_sources.h"
#include "server/flags.h"
#include "server/http/doors/door_call.h"
#include "server/limits/limits.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_loader.h"
#include "server/models/registry/model_registry.h"
#include "server/models/repository/model_repository.h"
#include "server/models/repository/repository_watcher.h"
#include "server/net/connection_acceptor.h"
#include "server/protocols/attention/attend_run.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/slow_readers.h"
#include "server/rpc/health_service.h"
#include "server/threads/periodic_thread.h"
#include "server/threads/task_pool.h"
#include "server/tracing/export/tracer.h"

namespace attendant {

// Owns every lifetime of the server, in the order in which things need each other.
class RunningApp final : public App {
 public:
  static absl::StatusOr<std::unique_ptr<App>> Start(const ServerFlags& flags,
                                                    const ModelSources& sources, ModelSetup setup,
                                                    ModelLoader loader,
                                                    absl::Duration goaway_after);
  ~RunningApp() override;

  absl::Status Run() override;
  void RequestStop() override;
  int grpc_port() const override { return grpc_.acceptor->port(); }
  int http_port() const override { return http_.endpoint->port(); }
  const ServerMetrics& metrics() const override { return metrics_; }

 private:
  // Counts the connections of the gRPC port.
  class ConnectionCounter final : public ConnectionObserver {
   public:
    explicit ConnectionCounter(ServerMetrics& metrics) : metrics_(metrics) {}
    void OnAccepted() override { metrics_.CountConnection("accepted"); }
    void OnRefused(Refusal reason) override { metrics_.CountConnection(RefusalName(reason)); }
    void OnOpenChanged(int64_t open) override { metrics_.SetConnections(open); }

   private:
    ServerMetrics& metrics_;
  };

  // A pool's thread may still be inside the batcher or a request's run after it ended the last
  // call: the members declared before this one outlive that.
  struct PoolsIdle {
    RunningApp& app;
    ~PoolsIdle() {
      app.decoders_.AwaitIdle();
      app.completions_.AwaitIdle();
    }
  };

  RunningApp(const ServerFlags& flags, const ModelSources& sources, AccessFiles access_files,
             std::unique_ptr<const Backend> backend, ModelLoader loader,
             const AttentionLimits& attention_limits, absl::Duration goaway_after);

  absl::Status Listen(const ServerFlags& flags);
  void StartModels(const ServerFlags& flags, const ModelSources& sources);
  void UpdateHealth();
  absl::Status LoadFailure() const;  // not OK when every model failed, and none can come later
  void Drain();
  // Sends GOAWAY on the connections of gRPC, and closes the open calls.
  void SendClientsElsewhere();
  // Ends gRPC's calls that wait for their clients, and from now on those that come: watches,
  // streams once what they have read is answered, and unary calls whose message is incomplete.
  void CloseOpenCalls();
  // Closes the open calls; waits until the answers are written, at most until `deadline`, a steady
  // time.
  void Close(absl::Time deadline);

  const ModelControl model_control_;
  const absl::Duration drain_delay_;
  const absl::Duration drain_timeout_;
  const absl::Duration goaway_after_;
  const std::unique_ptr<const Backend> backend_;  // null with a loader that has its own
  const std::optional<ModelRepository> repository_;
  // The registry's loading thread touches these: they outlive the registry.
  absl::Mutex health_mutex_;  // makes reading the registry and updating health one step
  absl::Mutex mutex_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool nothing_to_serve_ ABSL_GUARDED_BY(mutex_) = false;
  ServerMetrics metrics_;
  const std::unique_ptr<KeyStore> keys_;         // null: anybody may call
  const std::unique_ptr<AccessLog> access_log_;  // null: none is written
  const std::unique_ptr<Tracer> tracer_;         // null: no spans are made
  CallGate gate_;
  MemoryBudgets budgets_;
  HealthService health_service_;

  ModelWaits model_waits_;
  TaskPool completions_;
  TaskPool decoders_;
  ModelRegistry registry_;
  const RequestDependencies request_dependencies_{.models = registry_,
                                                  .metrics = metrics_,
                                                  .budgets = budgets_,
                                                  .gate = gate_,
                                                  .waits = model_waits_,
                                                  .large_requests = decoders_.large_executor(),
                                                  .large_answers = completions_.large_executor(),
                                                  .small_requests = decoders_.executor()};
  const EncodeDependencies encode_dependencies_;
  const AttendDependencies attend_dependencies_;
  GrpcServices services_;
  PoolsIdle pools_idle_{*this};
  SlowReaders slow_readers_;
  std::unique_ptr<PeriodicThread> key_reload_;
  const DoorDependencies door_dependencies_;
  HttpServer http_;
  std::unique_ptr<RepositoryWatcher> watcher_;  // with --model_control=poll
  ConnectionCounter connection_counter_{metrics_};
  GrpcServer grpc_;
  std::unique_ptr<PeriodicThread> grpc_tls_reload_;  // null: the gRPC port speaks no TLS
};

}  // namespace attendant
