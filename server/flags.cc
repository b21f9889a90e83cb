// SPDX-License-Identifier: Apache-2.0
#include "server/flags.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/flag_set.h"

namespace attendant {
namespace {

void AddModelFlags(ServerFlags& flags, FlagSet& set) {
  set.AddList("model", flags.models, "NAME=DIR, a checkpoint's folder; may be given many times");
  set.Add("model_repository", flags.model_repository,
          "every folder in this one that has a config.json is a model, named like the folder");
  set.Add("dtype", flags.dtype, "auto, f32, bf16, int8 on CPUs that have it, f16 or fp8 on GPUs");
  set.Add("backend", flags.backend,
          "auto (GPUs where there are any that compute in the dtype, else the CPU), cpu, cuda or "
          "reference (plain loops, slow)");
  set.Add("cuda_library", flags.cuda_library,
          "path of libattendant_cuda.so; empty: beside this program, in ../lib/attendant, or where "
          "the system finds libraries");
  set.Add("cuda_devices", flags.cuda_devices, "GPUs to use: all, or numbers as 0,2");
  set.Add("threads", flags.threads,
          "compute threads, shared out among the replicas; 0: what the affinity mask and the "
          "cgroup's quota allow");
  set.Add("replicas", flags.replicas,
          "batches that run side by side, on one copy of the weights; 0: one for each third-level "
          "cache or NUMA node, two for each GPU");
  set.Add("pin_threads", flags.pin_threads,
          "a processor for each compute thread: auto (where all processors of the affinity mask "
          "are one model's), on (wherever no two would share one) or off");
  set.Add("cpu_isa", flags.cpu_isa,
          "the highest instruction set that encoders and attention use on the CPU: auto, avx2, "
          "avx512, avx512_vnni, avx512_bf16 or amx");
}

void AddLimitFlags(ServerFlags& flags, FlagSet& set) {
  set.Add(
      "max_batch_tokens", flags.max_batch_tokens,
      "also the longest sequence; 0: what the back end is best with, 1024 on CPUs, 16384 on GPUs");
  set.Add("max_batch_sequences", flags.max_batch_sequences,
          "sequences in one batch; 0: 256 on CPUs, 1024 on GPUs");
  set.Add("max_queued_tokens", flags.max_queued_tokens, "also the largest request");
  set.Add("max_queued_requests", flags.max_queued_requests, "more get RESOURCE_EXHAUSTED");
  set.Add("max_queue_delay_us", flags.max_queue_delay_us,
          "how long a batch may wait to fill; 0 never waits");
  set.Add("max_request_bytes", flags.max_request_bytes, "of one message from a client");
  set.Add("max_request_sequences", flags.max_request_sequences, "sequences in one request");
  set.Add("max_response_bytes", flags.max_response_bytes, "tensors in one answer, as f32");
  set.Add("max_attention_weight_bytes", flags.max_attention_weight_bytes,
          "attention weights in one answer, as f32; 0 gives none");
  set.Add("max_pending_request_bytes", flags.max_pending_request_bytes,
          "all requests that are not yet answered; more get RESOURCE_EXHAUSTED");
  set.Add("max_pending_response_bytes", flags.max_pending_response_bytes,
          "tensors in all answers that are in work or not yet read by their clients; more get "
          "RESOURCE_EXHAUSTED");
  set.Add("max_attention_tokens", flags.max_attention_tokens,
          "queries and keys of one attention request; at most max_queued_tokens");
  set.Add("max_attention_bytes", flags.max_attention_bytes,
          "scratch memory of one attention request while it is computed");
  set.Add("max_attention_operations", flags.max_attention_operations,
          "multiply-adds of one attention request, about");
  set.Add("max_connection_calls", flags.max_connection_calls,
          "calls and streams at one time on one connection; its client waits with more");
  set.Add("max_stream_requests", flags.max_stream_requests,
          "unanswered requests of one stream; at the limit it is not read");
}

void AddServerFlags(ServerFlags& flags, FlagSet& set) {
  set.Add("listen", flags.listen, "gRPC address, host:port; port 0 picks a free one");
  set.Add("http_listen", flags.http_listen, "HTTP address for /metrics, /healthz and /readyz");
  set.Add("port_file", flags.port_file, "write the ports here: lines grpc=PORT and http=PORT");
  set.Add("drain_timeout_s", flags.drain_timeout_s,
          "after SIGTERM, how long admitted requests may take to finish");
  set.Add("tls_cert", flags.tls_cert, "PEM file with the server's certificate chain");
  set.Add("tls_key", flags.tls_key, "PEM file with its private key");
  set.Add("tls_client_ca", flags.tls_client_ca,
          "PEM file; clients must show a certificate signed by one of these");
  set.Add("log_format", flags.log_format, "text or json");
  set.Add("log_level", flags.log_level, "debug, info, warn, error or off");
  set.Add("version", flags.version, "print the version and end");
  set.Add("help", flags.help, "print this and end");
}

FlagSet AllFlags(ServerFlags& flags) {
  FlagSet set;
  AddModelFlags(flags, set);
  AddServerFlags(flags, set);
  AddLimitFlags(flags, set);
  return set;
}

absl::Status CheckOneOf(absl::string_view name, const std::string& value,
                        std::initializer_list<absl::string_view> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", name, " cannot be '", value,
                                                 "': it is one of ", absl::StrJoin(allowed, ", ")));
}

absl::Status CheckRange(absl::string_view name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, " cannot be ", value, ": it must be from ", low, " to ", high));
}

absl::Status CheckNumbers(const ServerFlags& flags) {
  constexpr int64_t kMaxBytes = int64_t{1} << 50;
  constexpr int64_t kMaxMessage = std::numeric_limits<int32_t>::max();  // gRPC's own limit
  constexpr int64_t kMaxCount = int64_t{1} << 30;
  constexpr int64_t kMinBatchTokens = 16;
  for (const absl::Status& status :
       {CheckRange("threads", flags.threads, 0, 4096),
        CheckRange("replicas", flags.replicas, 0, 1024),
        CheckRange("max_batch_tokens", flags.max_batch_tokens,
                   flags.max_batch_tokens == 0 ? 0 : kMinBatchTokens, int64_t{1} << 20),
        CheckRange("max_batch_sequences", flags.max_batch_sequences, 0, int64_t{1} << 20),
        CheckRange("max_queued_tokens", flags.max_queued_tokens,
                   std::max(kMinBatchTokens, flags.max_batch_tokens), kMaxCount),
        CheckRange("max_queued_requests", flags.max_queued_requests, 1, kMaxCount),
        CheckRange("max_queue_delay_us", flags.max_queue_delay_us, 0, 60'000'000),
        CheckRange("max_request_bytes", flags.max_request_bytes, 1024, kMaxMessage),
        CheckRange("max_request_sequences", flags.max_request_sequences, 1, kMaxCount),
        CheckRange("max_response_bytes", flags.max_response_bytes, 1024, kMaxMessage),
        CheckRange("max_attention_weight_bytes", flags.max_attention_weight_bytes, 0, kMaxMessage),
        CheckRange("max_pending_request_bytes", flags.max_pending_request_bytes,
                   flags.max_request_bytes, kMaxBytes),
        CheckRange("max_pending_response_bytes", flags.max_pending_response_bytes,
                   flags.max_response_bytes, kMaxBytes),
        CheckRange("max_attention_tokens", flags.max_attention_tokens, 1, kMaxCount),
        CheckRange("max_attention_bytes", flags.max_attention_bytes, 1024, kMaxBytes),
        CheckRange("max_attention_operations", flags.max_attention_operations, 1, kMaxBytes),
        CheckRange("max_connection_calls", flags.max_connection_calls, 1, kMaxMessage),
        CheckRange("max_stream_requests", flags.max_stream_requests, 1, kMaxCount),
        CheckRange("drain_timeout_s", flags.drain_timeout_s, 0, 86'400)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckWords(const ServerFlags& flags) {
  for (const absl::Status& status :
       {CheckOneOf("dtype", flags.dtype, {"auto", "f32", "bf16", "f16", "int8", "fp8"}),
        CheckOneOf("backend", flags.backend, {"auto", "cpu", "cuda", "reference"}),
        CheckOneOf("pin_threads", flags.pin_threads, {"auto", "on", "off"}),
        CheckOneOf("cpu_isa", flags.cpu_isa,
                   {"auto", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}),
        CheckOneOf("log_format", flags.log_format, {"text", "json"}),
        CheckOneOf("log_level", flags.log_level, {"debug", "info", "warn", "error", "off"})}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckTogether(const ServerFlags& flags) {
  if (flags.models.empty() && flags.model_repository.empty()) {
    return absl::InvalidArgumentError("no model: give --model NAME=DIR or --model_repository DIR");
  }
  if (flags.tls_cert.empty() != flags.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls_cert and --tls_key go together: one is missing");
  }
  if (!flags.tls_client_ca.empty() && flags.tls_cert.empty()) {
    return absl::InvalidArgumentError("--tls_client_ca needs --tls_cert and --tls_key");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerFlags> ParseServerFlags(std::span<const std::string> arguments) {
  ServerFlags flags;
  if (absl::Status status = AllFlags(flags).Parse(arguments); !status.ok()) return status;
  if (flags.help || flags.version) return flags;
  for (absl::Status (*check)(const ServerFlags&) : {CheckNumbers, CheckWords, CheckTogether}) {
    if (absl::Status status = check(flags); !status.ok()) return status;
  }
  return flags;
}

std::string ServerHelp() {
  ServerFlags defaults;
  return absl::StrCat(
      "attendant-server: serves transformer encoders over gRPC.\n\n"
      "  attendant-server --model NAME=DIR [flags]\n\n",
      AllFlags(defaults).Help());
}

}  // namespace attendant
