// SPDX-License-Identifier: Apache-2.0
#include "server/app/running_app.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/threads/cpu_budget.h"
#include "server/app/file_reload.h"
#include "server/app/grpc_server.h"
#include "server/app/model_log.h"
#include "server/models/attention_model.h"
#include "server/models/model_loader.h"
#include "server/net/descriptor_limit.h"
#include "server/threads/delayed_call.h"
#include "server/threads/steady_time.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

// Decoding requests and building answers takes little time beside computing.
int PoolThreads() { return std::clamp(ReadCpuBudget().threads / 4, 2, 8); }

// As many file descriptors as ports, gRPC, Asio, logs and a load need, with room. Where the system
// refuses them one, gRPC and Asio end the process.
constexpr int kDescriptors = 32;

std::vector<std::string> Names(const ModelSources& sources) {
  std::vector<std::string> names;
  for (const ModelSource& source : sources.fixed) names.push_back(source.name);
  for (const auto& [name, model] : sources.repository.models) names.push_back(name);
  return names;
}

std::unique_ptr<AccessLog> MakeAccessLog(const AccessFlags& flags, std::optional<LogFile> file,
                                         ServerMetrics& metrics) {
  if (!file.has_value()) return nullptr;
  return std::make_unique<AccessLog>(
      *std::move(file),
      AccessLog::Options{.sample = flags.access_log_sample,
                         .max_lines_per_s = flags.access_log_lines_per_s,
                         .on_failure =
                             [path = flags.access_log] {
                               spdlog::warn("--access_log {}: lines are lost, a write failed",
                                            path);
                             }},
      metrics);
}

std::unique_ptr<PeriodicThread> ReloadKeysEvery(absl::Duration interval, KeyStore* keys,
                                                ServerMetrics& metrics) {
  if (keys == nullptr) return nullptr;
  return std::make_unique<PeriodicThread>("key-reload", interval,
                                          [keys, &metrics] { ReloadKeys(*keys, metrics); });
}

RegistryOptions MakeRegistryOptions(const ServerFlags& flags, const ModelSources& sources,
                                    const std::optional<ModelRepository>& repository) {
  return {.readiness = flags.readiness,
          .control = flags.model_control,
          .unload_idle = flags.unload_idle_s > 0 ? absl::Seconds(flags.unload_idle_s)
                                                 : absl::InfiniteDuration(),
          .drain_timeout = absl::Seconds(flags.drain_timeout_s),
          .find = MakeFinder(sources.fixed, repository ? &*repository : nullptr),
          .fingerprint = FingerprintOf};
}

// Replicas of models that come later share the processors: as with several models, no thread gets a
// processor of its own.
size_t ModelsToPlace(const ServerFlags& flags, const ModelSources& sources) {
  const size_t models = sources.fixed.size() + sources.InRepository().size();
  return flags.model_control == ModelControl::kNone ? models : std::max<size_t>(models, 2);
}

}  // namespace

RunningApp::RunningApp(const ServerFlags& flags, const ModelSources& sources,
                       AccessFiles access_files, std::unique_ptr<const Backend> backend,
                       ModelLoader loader, const AttentionLimits& attention_limits,
                       absl::Duration goaway_after)
    : model_control_(flags.model_control),
      drain_delay_(absl::Seconds(flags.drain_delay_s)),
      drain_timeout_(absl::Seconds(flags.drain_timeout_s)),
      goaway_after_(goaway_after),
      backend_(std::move(backend)),
      repository_(MakeRepository(flags)),
      metrics_(kVersion),
      keys_(std::move(access_files.keys)),
      access_log_(MakeAccessLog(flags.access, std::move(access_files.log), metrics_)),
      tracer_(MakeTracer(flags, metrics_)),
      gate_(metrics_, keys_.get(), access_log_.get(), tracer_.get(), flags.connections.max_calls),
      budgets_(MakeMemoryLimits(flags), &metrics_),
      health_service_(gate_, budgets_, Names(sources)),
      completions_(PoolThreads(), "completion"),
      decoders_(PoolThreads(), "decode"),
      registry_(std::move(loader), metrics_, completions_.executor(),
                MakeRegistryOptions(flags, sources, repository_)),
      encode_dependencies_{request_dependencies_, flags.encode},
      attend_dependencies_{.requests = request_dependencies_,
                           .limits = attention_limits,
                           .max_request_bytes = flags.max_request_bytes,
                           .max_response_bytes = flags.encode.max_response_bytes},
      services_(flags, encode_dependencies_, attend_dependencies_, health_service_),
      slow_readers_(absl::Seconds(flags.max_write_s), services_.open_methods(), metrics_),
      key_reload_(ReloadKeysEvery(absl::Seconds(flags.tls_reload_s), keys_.get(), metrics_)),
      door_dependencies_{encode_dependencies_, kVersion, flags.max_request_bytes} {}

RunningApp::~RunningApp() {
  watcher_.reset();
  if (grpc_.server == nullptr) return;
  Close(absl::InfinitePast());
  grpc_.acceptor.reset();
  grpc_.server->Shutdown(std::chrono::system_clock::now());
  grpc_.server->Wait();
}

absl::StatusOr<std::unique_ptr<App>> App::Start(const ServerFlags& flags,
                                                const ModelSources& sources) {
  ATTENDANT_ASSIGN_OR_RETURN(ModelSetup setup,
                             MakeModelSetup(flags, ModelsToPlace(flags, sources)));
  ModelLoader loader = CheckpointLoader(*setup.backend, setup.options);
  return RunningApp::Start(flags, sources, std::move(setup), std::move(loader), kGoawayAfter);
}

absl::StatusOr<std::unique_ptr<App>> App::Start(const ServerFlags& flags,
                                                const ModelSources& sources, ModelLoader loader,
                                                absl::Duration goaway_after) {
  ModelSetup setup{.backend = nullptr,
                   .options = MakeModelOptions(flags, ModelsToPlace(flags, sources))};
  return RunningApp::Start(flags, sources, std::move(setup), std::move(loader), goaway_after);
}

absl::StatusOr<std::unique_ptr<App>> RunningApp::Start(const ServerFlags& flags,
                                                       const ModelSources& sources,
                                                       ModelSetup setup, ModelLoader loader,
                                                       absl::Duration goaway_after) {
  ATTENDANT_RETURN_IF_ERROR(CheckDescriptorRoom(kDescriptors));
  ATTENDANT_ASSIGN_OR_RETURN(AccessFiles access_files, OpenAccessFiles(flags.access));
  std::unique_ptr<RunningApp> app(new RunningApp(flags, sources, std::move(access_files),
                                                 std::move(setup.backend), std::move(loader),
                                                 setup.options.attention, goaway_after));
  app->registry_.SetListener([raw = app.get()](const ModelStatus& status, ModelNews news) {
    LogModel(status, news);
    raw->UpdateHealth();
  });
  // A call that comes at once finds them loading, not unknown.
  std::vector<ModelSource> at_start = sources.fixed;
  std::vector<ModelSource> later = sources.InRepository();
  if (app->model_control_ != ModelControl::kExplicit) {
    at_start.insert(at_start.end(), later.begin(), later.end());
    later.clear();
  }
  app->registry_.SetModels(std::move(at_start), std::move(later));
  if (flags.attention_service) {
    app->registry_.AddBuiltIn(
        MakeAttention(setup.options, app->metrics_, app->completions_.executor()));
  }
  ATTENDANT_RETURN_IF_ERROR(app->Listen(flags));
  app->StartModels(flags, sources);
  return app;
}

void RunningApp::StartModels(const ServerFlags& flags, const ModelSources& sources) {
  if (repository_) LogRepository(repository_->directory(), sources.repository);
  registry_.StartLoading();
  UpdateHealth();
  if (model_control_ != ModelControl::kPoll || !repository_) return;
  absl::flat_hash_set<std::string> fixed;
  for (const ModelSource& source : sources.fixed) fixed.insert(source.name);
  const absl::Duration interval = absl::Seconds(flags.repository_poll_s);
  watcher_ = std::make_unique<RepositoryWatcher>(
      *repository_, registry_,
      RepositoryWatcher::Options{
          .interval = interval,
          .settle = interval,
          .is_ours = [fixed](const std::string& name) { return !fixed.contains(name); },
          .on_unreadable =
              [](const absl::Status& status) {
                spdlog::error("the model repository cannot be read: {}",
                              std::string(status.message()));
              },
          .on_refused = LogRefused},
      sources.repository);
}

absl::Status RunningApp::Listen(const ServerFlags& flags) {
  ATTENDANT_ASSIGN_OR_RETURN(http_,
                             StartHttpServer(flags, door_dependencies_, attend_dependencies_));
  absl::StatusOr<GrpcServer> grpc = StartGrpcServer(
      flags, services_.services(), services_.unknown_methods(), connection_counter_);
  if (!grpc.ok()) {
    return absl::Status(grpc.status().code(),
                        absl::StrCat("--listen ", flags.listen, ": ", grpc.status().message()));
  }
  grpc_ = *std::move(grpc);
  if (grpc_.tls_files != nullptr) {
    grpc_tls_reload_ = ReloadTlsEvery(absl::Seconds(flags.tls_reload_s), ReloadedFile::kGrpcTls,
                                      *grpc_.tls_files, metrics_);
  }
  spdlog::info("listening: gRPC on {} (port {}), HTTP on {} (port {})", flags.listen, grpc_port(),
               flags.http_listen, http_port());
  return absl::OkStatus();
}

// A model serves when one of its versions does.
void RunningApp::UpdateHealth() {
  absl::MutexLock health_lock(&health_mutex_);
  std::map<std::string, bool> serving;
  for (const ModelStatus& status : registry_.List()) {
    serving[status.name] |= status.Serves() && status.stalled_workers == 0;
  }
  const bool ready = registry_.Ready().ok();
  serving[""] = ready;
  health_service_.Set(std::move(serving));
  metrics_.SetReady(ready);
  const bool failed = !LoadFailure().ok();
  absl::MutexLock lock(&mutex_);
  nothing_to_serve_ = failed;
}

absl::Status RunningApp::LoadFailure() const {
  if (model_control_ != ModelControl::kNone) return absl::OkStatus();
  const std::vector<ModelStatus> models = registry_.List();
  for (const ModelStatus& status : models) {
    if (status.state != ModelState::kFailed) return absl::OkStatus();
  }
  if (models.empty()) return absl::OkStatus();
  const absl::Status& error = models.front().error;
  return absl::Status(error.code(), absl::StrCat("no model could be loaded; '", models.front().name,
                                                 "': ", error.message()));
}

absl::Status RunningApp::Run() {
  const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_requested_ || nothing_to_serve_;
  };
  { absl::MutexLock lock(&mutex_, absl::Condition(&over)); }
  absl::Status status = LoadFailure();
  Drain();
  return status;
}

void RunningApp::RequestStop() {
  absl::MutexLock lock(&mutex_);
  stop_requested_ = true;
}

// Health first, so that load balancers send requests elsewhere before any is refused. Then admitted
// requests are answered. Most drains are over before kGoawayAfter: until then late calls are
// UNAVAILABLE, which clients retry, and afterwards on a new connection. With the GOAWAY some may be
// CANCELLED, which clients do not retry; without it, a client with one connection would stay here
// until the last request of all clients is answered.
void RunningApp::Drain() {
  constexpr absl::Duration kFlushTime = absl::Seconds(1);
  constexpr absl::Duration kSpanFlushTime = absl::Seconds(2);
  health_service_.Drain();
  registry_.AnnounceDrain();
  UpdateHealth();  // attendant_ready
  http_.endpoint->EndConnections();
  if (drain_delay_ > absl::ZeroDuration() && LoadFailure().ok()) {
    spdlog::info("serving for another {} s before the drain", absl::ToInt64Seconds(drain_delay_));
    absl::SleepFor(drain_delay_);
  }
  const absl::Time deadline = SteadyNow() + drain_timeout_;
  spdlog::info("draining for at most {} s", absl::ToInt64Seconds(drain_timeout_));
  {
    const DelayedCall goaway("goaway", goaway_after_, [this] { SendClientsElsewhere(); });
    if (!goaway.has_thread()) {
      spdlog::warn("the system refuses a thread: clients keep their connections until the end");
    }
    registry_.Drain(deadline);
    Close(std::max(deadline, SteadyNow() + kFlushTime));
  }
  if (access_log_ != nullptr) access_log_->Flush(kFlushTime);
  if (tracer_ != nullptr && !tracer_->Flush(kSpanFlushTime)) {
    spdlog::warn("the last spans did not reach the collector");
  }
  spdlog::info("stopped");
}

void RunningApp::SendClientsElsewhere() {
  grpc_.acceptor->StopAccepting();
  grpc_.goaway->Send(*grpc_.server);
  CloseOpenCalls();
}

void RunningApp::CloseOpenCalls() {
  health_service_.CloseWatches();
  for (OpenMethod* method : services_.open_methods()) method->CloseAll();
}

void RunningApp::Close(absl::Time deadline) {
  // All before one is waited for: a slow reader of one must not keep the others open.
  CloseOpenCalls();
  http_.endpoint->Close(deadline);
  for (OpenMethod* method : services_.open_methods()) method->AwaitClosed(deadline);
}

}  // namespace attendant
