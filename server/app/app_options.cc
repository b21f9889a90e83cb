// SPDX-License-Identifier: Apache-2.0
#include "server/app/app_options.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/backends/backends.h"
#include "kernels/backends/cuda_backend.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/threads/cpu_budget.h"
#include "kernels/core/threads/cpu_placement.h"
#include "kernels/core/threads/cpu_topology.h"
#include "server/app/model_sources.h"
#include "server/batching/compute_slot.h"
#include "server/http/client/otlp_poster.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/tracing/otlp_settings.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

std::vector<ThreadTeam> PlaceModels(const ServerFlags& flags, size_t num_models) {
  const CpuBudget budget = ReadCpuBudget();
  CpuPlacement placement = PlaceReplicas(budget, ReadCpuDomains(budget.cpus),
                                         {.threads = flags.threads,
                                          .replicas = flags.replicas,
                                          .models = static_cast<int>(num_models),
                                          .pin = flags.pin_threads});
  spdlog::info("each model computes in {}; {}", placement.description, budget.reason);
  return std::move(placement.replicas);
}

BatcherOptions MakeBatcherOptions(const ServerFlags& flags, const BackendDefaults& defaults) {
  return {.max_batch_tokens = flags.max_batch_tokens > 0
                                  ? flags.max_batch_tokens
                                  : std::min(defaults.batch_tokens, flags.max_queued_tokens),
          .max_batch_sequences =
              flags.max_batch_sequences > 0 ? flags.max_batch_sequences : defaults.batch_sequences,
          .max_queued_tokens = flags.max_queued_tokens,
          .max_queued_requests = flags.max_queued_requests,
          .max_queue_delay = absl::Microseconds(flags.max_queue_delay_us),
          .max_priority = flags.max_priority,
          .max_priority_wait = absl::Milliseconds(flags.max_priority_wait_ms),
          .stall_timeout = absl::Seconds(flags.stall_timeout_s)};
}

std::vector<std::shared_ptr<ComputeSlot>> MakeComputeSlots(size_t number) {
  std::vector<std::shared_ptr<ComputeSlot>> slots(number);
  for (std::shared_ptr<ComputeSlot>& slot : slots) slot = std::make_shared<ComputeSlot>();
  return slots;
}

ModelOptions MakeOptions(const ServerFlags& flags, std::vector<ThreadTeam> replicas,
                         const BackendDefaults& defaults) {
  std::vector<std::shared_ptr<ComputeSlot>> slots = MakeComputeSlots(replicas.size());
  return {.dtype = flags.dtype,
          .replicas = std::move(replicas),
          .compute_slots = std::move(slots),
          .device_sessions = flags.replicas,
          .batcher = MakeBatcherOptions(flags, defaults),
          .attention = flags.attention,
          .attention_nice = flags.attention_nice,
          .memory = std::make_shared<ModelMemory>(flags.max_model_bytes)};
}

absl::StatusOr<std::unique_ptr<Backend>> BuildBackend(const ServerFlags& flags,
                                                      const BackendOptions& options) {
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

// Modules compute on the CPU, in f32 or bf16. Other values of --dtype are for encoders only:
// modules then take the fastest of their formats.
absl::StatusOr<DType> ChooseModuleDType(const std::string& dtype, const Backend& backend,
                                        const BackendOptions& options) {
  const std::string word = dtype == "f32" || dtype == "bf16" ? dtype : "auto";
  if (backend.name() == "cpu") return ChooseDType(word, backend);
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> cpu, MakeBackend("cpu", options));
  return ChooseDType(word, *cpu);
}

std::optional<std::string> ReadEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

void LogExports(const absl::Status& status) {
  if (status.ok()) {
    spdlog::info("the collector takes spans again");
  } else {
    spdlog::warn("spans cannot be sent: {}", std::string(status.message()));
  }
}

}  // namespace

absl::StatusOr<ModelSetup> MakeModelSetup(const ServerFlags& flags, size_t num_models) {
  std::vector<ThreadTeam> replicas = PlaceModels(flags, num_models);
  BackendOptions options{.cpu_isa = flags.cpu_isa,
                         .matmul = flags.matmul,
                         .load_threads = 0,
                         .cuda_library = flags.cuda_library,
                         .cuda_devices = flags.cuda_devices};
  for (const ThreadTeam& team : replicas) options.load_threads += team.threads;
  ModelSetup setup;
  ATTENDANT_ASSIGN_OR_RETURN(setup.backend, BuildBackend(flags, options));
  setup.options = MakeOptions(flags, std::move(replicas), setup.backend->defaults());
  ATTENDANT_ASSIGN_OR_RETURN(setup.options.model_weights, ReadModelWeights(flags));
  ATTENDANT_ASSIGN_OR_RETURN(setup.options.model_adapters, ReadModelAdapters(flags));
  setup.options.attention_isa = flags.cpu_isa;
  setup.options.attention_matmul = flags.matmul;
  setup.options.module_dtype = ChooseModuleDType(flags.dtype, *setup.backend, options);
  return setup;
}

ModelOptions MakeModelOptions(const ServerFlags& flags, size_t num_models) {
  return MakeOptions(flags, PlaceModels(flags, num_models), BackendDefaults{});
}

absl::StatusOr<AccessFiles> OpenAccessFiles(const AccessFlags& flags) {
  const auto naming = [](const char* flag, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(flag, ": ", status.message()));
  };
  AccessFiles files;
  if (!flags.api_keys.empty()) {
    absl::StatusOr<std::unique_ptr<KeyStore>> keys = KeyStore::Open(flags.api_keys);
    if (!keys.ok()) return naming("--api_keys", keys.status());
    files.keys = *std::move(keys);
  }
  if (!flags.access_log.empty()) {
    absl::StatusOr<LogFile> log = LogFile::Open(flags.access_log);
    if (!log.ok()) return naming("--access_log", log.status());
    files.log.emplace(*std::move(log));
  }
  return files;
}

std::unique_ptr<Tracer> MakeTracer(const ServerFlags& flags, ServerMetrics& metrics) {
  OtlpSettings settings = ReadOtlpSettings(flags.access.otlp_endpoint, kVersion, &ReadEnvironment);
  for (const std::string& warning : settings.warnings) spdlog::warn("{}", warning);
  if (!settings.endpoint.has_value()) return nullptr;
  const OtlpEndpoint endpoint = *settings.endpoint;
  absl::StatusOr<std::unique_ptr<SpanTransport>> poster =
      MakeOtlpPoster({.endpoint = endpoint,
                      .headers = std::move(settings.headers),
                      .ca_file = std::move(settings.ca_file),
                      .gzip = settings.gzip,
                      .version = std::string(kVersion)});
  if (!poster.ok()) {
    spdlog::error("no spans are sent: OTEL_EXPORTER_OTLP_CERTIFICATE: {}",
                  std::string(poster.status().message()));
    return nullptr;
  }
  // A query may hold a secret.
  spdlog::info("spans go to {}://{}{}", endpoint.tls ? "https" : "http", endpoint.authority(),
               endpoint.path.substr(0, endpoint.path.find('?')));
  return std::make_unique<Tracer>(Tracer::Options{.sampler = settings.sampler,
                                                  .resource = std::move(settings.resource),
                                                  .version = std::string(kVersion),
                                                  .max_queued_spans = settings.max_queued_spans,
                                                  .max_batch_spans = settings.max_batch_spans,
                                                  .delay = settings.delay,
                                                  .timeout = settings.timeout,
                                                  .on_change = LogExports},
                                  *std::move(poster), metrics);
}

MemoryLimits MakeMemoryLimits(const ServerFlags& flags) {
  // A connection that takes all its part leaves the rest to others. It has room for some of the
  // largest messages, with what is counted beside their bytes, whatever the budgets are.
  constexpr int64_t kLargest = 4;
  constexpr int64_t kFixedBytes = int64_t{8} << 20;
  const auto part = [&flags](int64_t budget, int64_t largest) {
    const int64_t percent = flags.max_connection_memory_percent;
    const int64_t share = budget / 100 * percent + budget % 100 * percent / 100;
    return std::min(budget, std::max(share, kLargest * largest + kFixedBytes));
  };
  MemoryLimits limits = flags.memory;
  limits.connection_request_bytes = part(limits.max_pending_request_bytes, flags.max_request_bytes);
  limits.connection_response_bytes =
      part(limits.max_pending_response_bytes, flags.encode.max_response_bytes);
  limits.connection_stream_bytes = part(limits.max_open_stream_bytes, kStreamBytes);
  return limits;
}

StreamLimits MakeStreamLimits(const ServerFlags& flags) {
  return {.max_requests = flags.streams.max_requests, .max_bytes = 2 * flags.max_request_bytes};
}

}  // namespace attendant
