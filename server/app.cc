// SPDX-License-Identifier: Apache-2.0
#include "server/app.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/backends/backends.h"
#include "kernels/backends/cuda_backend.h"
#include "kernels/core/threads/cpu_budget.h"
#include "kernels/core/threads/cpu_placement.h"
#include "kernels/core/threads/cpu_topology.h"
#include "server/grpc_server.h"
#include "server/models/attention_model.h"
#include "server/models/model_loader.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

PinThreads PinThreadsOf(const std::string& word) {
  return word == "on" ? PinThreads::kOn : word == "off" ? PinThreads::kOff : PinThreads::kAuto;
}

CpuPlacement PlaceModels(const ServerFlags& flags, size_t models) {
  const CpuBudget budget = ReadCpuBudget();
  CpuPlacement placement = PlaceReplicas(budget, ReadCpuDomains(budget.cpus),
                                         {.threads = flags.threads,
                                          .replicas = flags.replicas,
                                          .models = static_cast<int>(models),
                                          .pin = PinThreadsOf(flags.pin_threads)});
  spdlog::info("each model computes in {}; {}", placement.description, budget.reason);
  return placement;
}

// What the flags leave open is as the back end likes it.
BatcherOptions MakeBatcherOptions(const ServerFlags& flags, const BackendDefaults& defaults) {
  return {.max_batch_tokens = flags.max_batch_tokens > 0
                                  ? flags.max_batch_tokens
                                  : std::min(defaults.batch_tokens, flags.max_queued_tokens),
          .max_batch_sequences =
              flags.max_batch_sequences > 0 ? flags.max_batch_sequences : defaults.batch_sequences,
          .max_queued_tokens = flags.max_queued_tokens,
          .max_queued_requests = flags.max_queued_requests,
          .max_queue_delay = absl::Microseconds(flags.max_queue_delay_us)};
}

BackendOptions MakeBackendOptions(const ServerFlags& flags, int load_threads) {
  return {.cpu_isa = flags.cpu_isa,
          .load_threads = load_threads,
          .cuda_library = flags.cuda_library,
          .cuda_devices = flags.cuda_devices};
}

ModelOptions MakeModelOptions(const ServerFlags& flags, const std::string& backend,
                              const BackendDefaults& defaults, size_t models) {
  std::vector<ThreadTeam> replicas = PlaceModels(flags, models).replicas;
  int threads = 0;
  for (const ThreadTeam& team : replicas) threads += team.threads;
  return {.dtype = flags.dtype,
          .backend = backend,
          .backend_options = MakeBackendOptions(flags, threads),
          .replicas = std::move(replicas),
          .device_sessions = flags.replicas,
          .batcher = MakeBatcherOptions(flags, defaults),
          .attention = {.max_tokens = std::min(flags.max_attention_tokens, flags.max_queued_tokens),
                        .max_bytes = flags.max_attention_bytes,
                        .max_operations = flags.max_attention_operations}};
}

// The back end that the flags stand for, settled once: every model is to have the same.
absl::StatusOr<std::unique_ptr<Backend>> SettleBackend(const ServerFlags& flags) {
  const BackendOptions options = MakeBackendOptions(flags, 1);
  if (const auto devices = ParseCudaDevices(flags.cuda_devices); !devices.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--cuda_devices: ", devices.status().message()));
  }
  const BackendChoice choice = ChooseBackend(flags.backend, flags.dtype, options);
  if (!choice.reason.empty()) spdlog::info("{}", choice.reason);
  auto backend = MakeBackend(choice.name, options);
  if (backend.ok()) return backend;
  const bool names_isa = choice.name == "cpu" || flags.cpu_isa != "auto";
  const std::string isa = names_isa ? absl::StrCat(" --cpu_isa ", flags.cpu_isa) : "";
  return absl::Status(backend.status().code(), absl::StrCat("--backend ", flags.backend, isa, ": ",
                                                            backend.status().message()));
}

// Building answers, and reading requests, takes little beside computing.
int PoolThreads() { return std::clamp(ReadCpuBudget().threads / 4, 2, 8); }

std::vector<std::string> Names(const std::vector<ModelSource>& sources) {
  std::vector<std::string> names;
  for (const ModelSource& source : sources) names.push_back(source.name);
  return names;
}

double ToMiB(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void LogModule(const AttentionModel& model) {
  const ModuleConfig& config = model.module->config();
  spdlog::info("attention module '{}' is ready after {:.2f} s: {}, hidden {}, {} heads, {} layers",
               model.name, absl::ToDoubleSeconds(model.load_time),
               std::string(DTypeName(model.module->dtype())), config.hidden, config.heads,
               std::max<int64_t>(config.layers, 1));
}

void LogModel(const ModelStatus& status) {
  if (status.state == ModelState::kFailed) {
    return spdlog::error("model '{}' failed to load: {}", status.name,
                         std::string(status.error.message()));
  }
  if (status.state == ModelState::kLost) {
    return spdlog::error("model '{}' answers no more: {}", status.name,
                         std::string(status.error.message()));
  }
  if (status.state == ModelState::kDraining) {
    return spdlog::info("model '{}' is draining", status.name);
  }
  if (status.attention != nullptr) return LogModule(*status.attention);
  if (status.model == nullptr) return;
  const Model& model = *status.model;
  const PreparedInfo& info = model.encoder->info();
  spdlog::info(
      "model '{}' is ready after {:.2f} s: {} on {} ({}{}), {} layers, hidden {}, at most {} "
      "tokens, text cut at {}{}; weights {:.1f} MiB, arenas {:.1f} MiB",
      status.name, absl::ToDoubleSeconds(model.load_time), std::string(DTypeName(info.dtype)),
      info.backend, info.isa,
      info.matmul_implementation.empty() ? "" : ", " + info.matmul_implementation,
      model.config().layers, model.config().hidden, model.max_sequence_tokens,
      model.sentence.max_text_tokens,
      model.tokenizer == nullptr ? ", no tokenizer: takes ids only" : "", ToMiB(info.weight_bytes),
      ToMiB(model.arena_bytes));
}

}  // namespace

App::App(const ServerFlags& flags, const std::vector<ModelSource>& sources, ModelLoader loader,
         const AttentionLimits& attention_limits)
    : drain_timeout_(absl::Seconds(flags.drain_timeout_s)),
      health_service_(Names(sources)),
      metrics_(kVersion),
      completions_(PoolThreads(), "completion"),
      readers_(PoolThreads(), "reader"),
      budgets_({.max_pending_request_bytes = flags.max_pending_request_bytes,
                .max_pending_response_bytes = flags.max_pending_response_bytes}),
      registry_(std::move(loader), metrics_,
                [this](CompletionPool::Task task) { completions_.Post(std::move(task)); }),
      pipeline_(registry_, metrics_, budgets_,
                {.max_request_sequences = flags.max_request_sequences,
                 .max_response_bytes = flags.max_response_bytes,
                 .max_attention_weight_bytes = flags.max_attention_weight_bytes}),
      encoder_service_(
          pipeline_, [this](CompletionPool::Task task) { readers_.Post(std::move(task)); },
          {.max_requests = flags.max_stream_requests, .max_bytes = 2 * flags.max_request_bytes}),
      attention_service_(
          {.models = registry_,
           .metrics = metrics_,
           .budgets = budgets_,
           .limits = attention_limits,
           .max_request_bytes = flags.max_request_bytes,
           .max_response_bytes = flags.max_response_bytes},
          [this](CompletionPool::Task task) { readers_.Post(std::move(task)); },
          {.max_requests = flags.max_stream_requests, .max_bytes = 2 * flags.max_request_bytes}),
      kserve_service_(
          pipeline_, kVersion,
          [this](CompletionPool::Task task) { readers_.Post(std::move(task)); },
          {.max_requests = flags.max_stream_requests, .max_bytes = 2 * flags.max_request_bytes}) {}

App::~App() {
  if (server_ == nullptr) return;
  Close(absl::InfinitePast());
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

absl::StatusOr<std::unique_ptr<App>> App::Start(const ServerFlags& flags,
                                                const std::vector<ModelSource>& sources) {
  const absl::StatusOr<std::unique_ptr<Backend>> backend = SettleBackend(flags);
  if (!backend.ok()) return backend.status();
  const ModelOptions options = MakeModelOptions(flags, std::string((*backend)->name()),
                                                (*backend)->defaults(), sources.size());
  return Start(flags, sources, CheckpointLoader(options), options);
}

absl::StatusOr<std::unique_ptr<App>> App::Start(const ServerFlags& flags,
                                                const std::vector<ModelSource>& sources,
                                                ModelLoader loader) {
  return Start(flags, sources, std::move(loader),
               MakeModelOptions(flags, "cpu", BackendDefaults{}, sources.size()));
}

absl::StatusOr<std::unique_ptr<App>> App::Start(const ServerFlags& flags,
                                                const std::vector<ModelSource>& sources,
                                                ModelLoader loader, const ModelOptions& options) {
  std::unique_ptr<App> app(new App(flags, sources, std::move(loader), options.attention));
  app->registry_.SetListener([raw = app.get()](const std::string& name, ModelState state) {
    raw->OnModelChanged(name, state);
  });
  app->registry_.SetModels(sources);  // a call that comes at once finds them loading, not unknown
  app->registry_.AddBuiltIn(MakeAttention(
      options, app->metrics_,
      [raw = app.get()](CompletionPool::Task task) { raw->completions_.Post(std::move(task)); }));
  if (absl::Status status = app->Listen(flags); !status.ok()) return status;
  app->registry_.StartLoading();
  return app;
}

absl::Status App::Listen(const ServerFlags& flags) {
  absl::StatusOr<std::unique_ptr<HttpEndpoint>> http =
      HttpEndpoint::Listen(flags.http_listen, metrics_, [this] { return registry_.Ready(); });
  if (!http.ok()) {
    return absl::Status(http.status().code(), absl::StrCat("--http_listen ", flags.http_listen,
                                                           ": ", http.status().message()));
  }
  http_ = *std::move(http);
  grpc::Service* const services[] = {&encoder_service_, &attention_service_, &kserve_service_,
                                     &health_service_};
  absl::StatusOr<ListeningServer> listening = StartGrpcServer(flags, services);
  if (!listening.ok()) return listening.status();
  server_ = std::move(listening->server);
  grpc_port_ = listening->port;
  spdlog::info("listening: gRPC on {} (port {}), HTTP on {} (port {})", flags.listen, grpc_port_,
               flags.http_listen, http_port());
  return absl::OkStatus();
}

void App::OnModelChanged(const std::string& name, ModelState /*state*/) {
  absl::MutexLock health_lock(&health_mutex_);
  for (const ModelStatus& status : registry_.List()) {
    health_service_.Set(status.name, status.state == ModelState::kReady);
    if (status.name == name) LogModel(status);
  }
  health_service_.Set("", registry_.Ready().ok());
  const bool failed = !LoadFailure().ok();
  absl::MutexLock lock(&mutex_);
  nothing_to_serve_ = failed;
}

absl::Status App::LoadFailure() const {
  const std::vector<ModelStatus> models = registry_.List();
  for (const ModelStatus& status : models) {
    if (status.state != ModelState::kFailed) return absl::OkStatus();
  }
  if (models.empty()) return absl::OkStatus();
  const absl::Status& error = models.front().error;
  return absl::Status(error.code(), absl::StrCat("no model could be loaded; '", models.front().name,
                                                 "': ", error.message()));
}

absl::Status App::Run() {
  const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_requested_ || nothing_to_serve_;
  };
  { absl::MutexLock lock(&mutex_, absl::Condition(&over)); }
  absl::Status status = LoadFailure();
  Drain();
  return status;
}

void App::RequestStop() {
  absl::MutexLock lock(&mutex_);
  stop_requested_ = true;
}

// Health first, so that load balancers look away before anyone is refused. Then what was admitted
// is answered. gRPC's Shutdown stays out of this: it ends calls that are just arriving with
// CANCELLED, which clients do not try elsewhere.
void App::Drain() {
  constexpr absl::Duration kFlushTime = absl::Seconds(1);
  const absl::Time deadline = absl::Now() + drain_timeout_;
  spdlog::info("draining for at most {} s", absl::ToInt64Seconds(drain_timeout_));
  health_service_.Drain();
  registry_.Drain(deadline);
  Close(std::max(deadline, absl::Now() + kFlushTime));
  spdlog::info("stopped");
}

void App::Close(absl::Time deadline) {
  health_service_.CloseWatches();
  encoder_service_.Close(deadline);
  attention_service_.Close(deadline);
  kserve_service_.Close(deadline);
}

}  // namespace attendant
