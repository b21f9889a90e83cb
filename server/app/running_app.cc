// SPDX-License-Identifier: Apache-2.0
#include "server/app/running_app.h"

#include <algorithm>
#include <chrono>
#include <iterator>
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
#include "server/http/attendant/routes.h"
#include "server/http/console/routes.h"
#include "server/http/doors/cohere/cohere.h"
#include "server/http/doors/cohere/rerank.h"
#include "server/http/doors/nim.h"
#include "server/http/doors/openai.h"
#include "server/http/doors/openapi.h"
#include "server/http/doors/tei/tei.h"
#include "server/http/doors/vllm/vllm.h"
#include "server/http/kserve/routes.h"
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

template <typename Files>
std::unique_ptr<PeriodicThread> ReloadTlsEvery(absl::Duration interval, ReloadedFile file,
                                               Files& files, ServerMetrics& metrics) {
  return std::make_unique<PeriodicThread>("tls-reload", interval, [file, &files, &metrics] {
    ReportTlsReload(file, files.Reload(), metrics);
  });
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

// An operator who sets up TLS or keys may think that they protect both ports.
void WarnOfPlaintextHttp(const ServerFlags& flags, bool loopback) {
  if (loopback || flags.http_tls) return;
  if (flags.tls_cert.empty() && flags.access.api_keys.empty()) return;
  spdlog::warn(
      "--http_listen {} reaches other machines, and without --http_tls=on what they send and get "
      "there is not encrypted{}{}",
      flags.http_listen, flags.access.api_keys.empty() ? "" : ", API keys included",
      flags.tls_client_ca.empty() ? "" : ", and they need no certificate of --tls_client_ca");
}

// The clients of a proxy on this machine come from loopback too. Keys say that not all of them are
// trusted, and pages ask for none.
bool ShowsConnections(const AccessFlags& flags) {
  if (flags.connections_page == ShowConnections::kAuto) return flags.api_keys.empty();
  return flags.connections_page == ShowConnections::kOn;
}

int64_t HttpRequests(const HttpLimits& limits) {
  const int64_t most = HttpRequestsWithin(RaiseDescriptorLimit(), HttpLimits::kPageConnections);
  if (most >= limits.max_connections) return limits.max_connections;
  spdlog::warn("at most {} HTTP requests in work (--max_http_connections): see ulimit -n", most);
  return most;
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

std::vector<HttpPage> RunningApp::Pages(const ServerFlags& flags, const HttpDoors& doors) {
  std::vector<HttpPage> pages = {
      {.path = "/openapi.json",
       .content_type = "application/json",
       .body = [document = OpenApiDocument(doors.routes, kVersion)] { return document; }}};
  if (!ShowsConnections(flags.access)) return pages;
  pages.push_back({.path = "/connections",
                   .content_type = "application/json",
                   .body =
                       [this] {
                         std::vector<ConnectionReport> reports = gate_.connections().Report();
                         budgets_.AddHeld(reports);
                         return ConnectionsPage(std::move(reports));
                       },
                   .only_on_loopback = flags.access.connections_page == ShowConnections::kAuto});
  return pages;
}

HttpDoors RunningApp::Doors(const ServerFlags& flags) {
  HttpDoors doors{.requests = &request_dependencies_, .limits = flags.http, .tls = http_tls_.get()};
  doors.limits.max_connections = HttpRequests(flags.http);
  doors.limits.max_request_bytes = flags.max_request_bytes;
  doors.limits.max_write_s = flags.max_write_s;
  const auto add = [&doors](std::vector<HttpRoute> routes) {
    std::move(routes.begin(), routes.end(), std::back_inserter(doors.routes));
  };
  for (const auto make :
       {OpenAiRoutes, TeiRoutes, KServeRoutes, CohereRoutes, RerankRoutes, NimRoutes, VllmRoutes}) {
    add(make(door_dependencies_));
  }
  add(AttendantRoutes(door_dependencies_,
                      flags.attention_service ? &attend_dependencies_ : nullptr));
  if (flags.console) add(ConsoleRoutes(door_dependencies_));
  return doors;
}

absl::Status RunningApp::LoadHttpTls(const ServerFlags& flags) {
  if (!flags.http_tls) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(
      http_tls_, TlsContext::Load({flags.tls_cert, flags.tls_key, flags.tls_client_ca}));
  http_tls_reload_ = ReloadTlsEvery(absl::Seconds(flags.tls_reload_s), ReloadedFile::kHttpTls,
                                    *http_tls_, metrics_);
  return absl::OkStatus();
}

absl::Status RunningApp::Listen(const ServerFlags& flags) {
  ATTENDANT_RETURN_IF_ERROR(LoadHttpTls(flags));
  HttpDoors doors = Doors(flags);
  std::vector<HttpPage> pages = Pages(flags, doors);
  absl::StatusOr<std::unique_ptr<HttpEndpoint>> http =
      HttpEndpoint::Listen(flags.http_listen, metrics_,
                           HttpProbes{.ready = [this] { return registry_.Ready(); },
                                      .live = [this] { return registry_.Live(); }},
                           std::move(pages), std::move(doors));
  if (!http.ok()) {
    return absl::Status(http.status().code(), absl::StrCat("--http_listen ", flags.http_listen,
                                                           ": ", http.status().message()));
  }
  http_ = *std::move(http);
  WarnOfPlaintextHttp(flags, http_->loopback());
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
  http_->EndConnections();
  if (drain_delay_ > absl::ZeroDuration() && LoadFailure().ok()) {
    spdlog::info("serving for another {} s before the drain", absl::ToInt64Seconds(drain_delay_));
    absl::SleepFor(drain_delay_);
  }
  const absl::Time deadline = SteadyNow() + drain_timeout_;
  spdlog::info("draining for at most {} s", absl::ToInt64Seconds(drain_timeout_));
  {
    const DelayedCall goaway("goaway", goaway_after_, [this] { SendClientsElsewhere(); });
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
  http_->Close(deadline);
  for (OpenMethod* method : services_.open_methods()) method->AwaitClosed(deadline);
}

}  // namespace attendant
