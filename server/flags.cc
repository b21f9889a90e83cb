// SPDX-License-Identifier: Apache-2.0
#include "server/flags.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/flags/flag_parser.h"
#include "kernels/core/status_macros.h"
#include "kernels/core/threads/thread_pool.h"
#include "server/net/listening_socket.h"
#include "server/requests/memory/memory_budgets.h"
#include "server/tracing/otlp_endpoint.h"

namespace attendant {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxMessage = std::numeric_limits<int32_t>::max();  // gRPC's own limit
constexpr int64_t kMaxCount = int64_t{1} << 30;
constexpr int64_t kMaxSeconds = 30 * 86'400;
constexpr int64_t kMinBatchTokens = 16;

void AddOnOff(FlagParser& parser, absl::string_view name, bool* value, absl::string_view help) {
  parser.AddChoice<bool>(name, value, {{"on", true}, {"off", false}}, help);
}

void AddModelFlags(ServerFlags& flags, FlagParser& parser) {
  parser.Section("Models");
  parser.AddRepeated("model", &flags.models, "NAME=DIR",
                     "Serve the checkpoint in folder DIR under NAME; may be given many times");
  parser.Add("model_repository", &flags.model_repository, "DIR",
             "Serve every folder in DIR that has a config.json, or folders 1, 2, ... that have one "
             "each, under the folder's name");
  parser.AddRepeated("model_adapter", &flags.model_adapters, "NAME=ADAPTER",
                     "Merge ADAPTER, one of lora_adaptations in config.json, into the weights of "
                     "the model NAME, and put its instruction before texts; may be given many "
                     "times; other models have the weights without adapters");
  parser.AddRepeated("model_weight", &flags.model_weights, "NAME=WEIGHT",
                     "Give the model NAME so many parts, from 0.01 to 100, of the processors while "
                     "other models are busy too; may be given many times; others have 1");
  parser.AddChoice<ModelControl>(
      "model_control", &flags.model_control,
      {{"none", ModelControl::kNone},
       {"explicit", ModelControl::kExplicit},
       {"poll", ModelControl::kPoll}},
      "When models are loaded: none loads all at the start; explicit loads those of "
      "--model then, and others when a client calls RepositoryModelLoad; poll loads "
      "all, and follows the changes in --model_repository");
  parser.AddNumber("max_model_versions", &flags.max_model_versions, "N", {1, 1000},
                   "Most versions of a model in --model_repository that are served, the highest "
                   "ones");
  parser.AddNumber("repository_poll_s", &flags.repository_poll_s, "SECONDS", {1, 86'400},
                   "With --model_control=poll: how often the repository is looked at, and how long "
                   "a model's files must stay the same before it is loaded");
  parser.AddNumber("unload_idle_s", &flags.unload_idle_s, "SECONDS", {0, kMaxSeconds},
                   "Time without a request after which a model is unloaded; the next request loads "
                   "it, and waits; 0 is never");
  parser.AddNumber("max_model_bytes", &flags.max_model_bytes, "BYTES", {0, kMaxBytes},
                   "Memory of the weights and scratch memory of all models together; a load beyond "
                   "it is refused; 0 is what the machine and the cgroup have");
  parser.AddChoice("dtype", &flags.dtype, {"auto", "f32", "bf16", "f16", "int8", "fp8"},
                   "Number format of the computation; auto is bf16 where the hardware has it, else "
                   "f32; f16 and fp8 need a GPU, int8 a CPU");
}

void AddHardwareFlags(ServerFlags& flags, FlagParser& parser) {
  parser.Section("Hardware");
  parser.AddChoice("backend", &flags.backend, {"auto", "cpu", "cuda", "reference"},
                   "Where models compute; auto takes GPUs that support the number format, else the "
                   "CPU; reference is plain loops for tests, and slow");
  parser.AddNumber("threads", &flags.threads, "N", {0, ThreadPool::kMaxThreads},
                   "Compute threads of all replicas together; 0 takes as many as the affinity mask "
                   "and the cgroup's CPU quota allow");
  parser.AddNumber("replicas", &flags.replicas, "N", {0, 1024},
                   "Batches of one model that run at the same time and share its weights; 0 is one "
                   "for each third-level cache or NUMA node, and two for each GPU");
  parser.AddChoice<PinThreads>(
      "pin_threads", &flags.pin_threads,
      {{"auto", PinThreads::kAuto}, {"on", PinThreads::kOn}, {"off", PinThreads::kOff}},
      "Bind each compute thread to a processor; auto does so if one model has all "
      "processors of the affinity mask, on if no two threads would share a processor");
  parser.AddChoice("cpu_isa", &flags.cpu_isa,
                   {"auto", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"},
                   "Highest instruction set to use on the CPU; auto is the best that the CPU has");
  parser.AddChoice("matmul", &flags.matmul, {"auto", "onednn", "tiles"},
                   "Who multiplies matrices on the CPU where both can; auto is whichever was "
                   "measured to be faster");
  parser.Add("cuda_devices", &flags.cuda_devices, "all|N,N,...", "GPUs to use, by number");
  parser.Add("cuda_library", &flags.cuda_library, "FILE",
             "Path of libattendant_cuda.so; without it, the server looks beside its program, in "
             "../lib/attendant, and where the system finds libraries");
}

void AddBatchingFlags(ServerFlags& flags, FlagParser& parser) {
  parser.Section("Batching and queue");
  parser.AddNumber("max_batch_tokens", &flags.max_batch_tokens, "TOKENS", {0, int64_t{1} << 20},
                   "Most tokens in one batch, and in one sequence; 0 is 1024 on CPUs and 16384 on "
                   "GPUs; other values are at least 16");
  parser.AddNumber("max_batch_sequences", &flags.max_batch_sequences, "N", {0, int64_t{1} << 20},
                   "Most sequences in one batch; 0 is 256 on CPUs and 1024 on GPUs");
  parser.AddNumber("max_queue_delay_us", &flags.max_queue_delay_us, "MICROSECONDS", {0, 60'000'000},
                   "Longest time that a batch waits for more sequences; 0 never waits");
  parser.AddNumber("max_priority", &flags.max_priority, "PRIORITY", {-100, 100},
                   "Highest priority of a request; higher ones are lowered to it; 0 lets clients "
                   "only put their own requests behind others");
  parser.AddNumber("max_priority_wait_ms", &flags.max_priority_wait_ms, "MILLISECONDS",
                   {0, 3'600'000},
                   "Longest time that a request waits while higher priorities are served; then a "
                   "quarter of each batch goes to such requests, the longest waiting first, or "
                   "every fourth batch where one request fills it");
  parser.AddNumber("stall_timeout_s", &flags.stall_timeout_s, "SECONDS", {1, 86'400},
                   "A batch that runs longer makes the health of its model NOT_SERVING until it "
                   "ends");
  parser.AddNumber("max_queued_tokens", &flags.max_queued_tokens, "TOKENS",
                   {kMinBatchTokens, kMaxCount},
                   "Most tokens in a model's queue, and in one request; more get "
                   "RESOURCE_EXHAUSTED; at least max_batch_tokens");
  parser.AddNumber("max_queued_requests", &flags.max_queued_requests, "N", {1, kMaxCount},
                   "Most requests in a model's queue; more get RESOURCE_EXHAUSTED");
}

void AddLimitFlags(ServerFlags& flags, FlagParser& parser) {
  parser.Section("Limits");
  parser.AddNumber("max_request_bytes", &flags.max_request_bytes, "BYTES", {1024, kMaxMessage},
                   "Largest message from a client");
  parser.AddNumber("max_request_sequences", &flags.encode.max_request_sequences, "N",
                   {1, kMaxCount}, "Most sequences in one request");
  parser.AddNumber("max_response_bytes", &flags.encode.max_response_bytes, "BYTES",
                   {1024, kMaxMessage}, "Largest tensors of one answer, counted as f32");
  parser.AddNumber("max_attention_weight_bytes", &flags.encode.max_attention_weight_bytes, "BYTES",
                   {0, kMaxMessage},
                   "Largest attention weights of one answer, counted as f32; 0 refuses them");
  parser.AddNumber("max_pending_request_bytes", &flags.memory.max_pending_request_bytes, "BYTES",
                   {0, kMaxBytes},
                   "Memory of all requests without an answer yet; more get RESOURCE_EXHAUSTED; at "
                   "least max_request_bytes");
  parser.AddNumber("max_pending_response_bytes", &flags.memory.max_pending_response_bytes, "BYTES",
                   {0, kMaxBytes},
                   "Memory of all answers that are in work or not yet read by their clients; more "
                   "get RESOURCE_EXHAUSTED; at least max_response_bytes");
  parser.AddNumber(
      "max_open_stream_bytes", &flags.memory.max_open_stream_bytes, "BYTES",
      {kStreamBytes + kMaxHeadBytes, kMaxBytes},
      "Memory of all open streams and watches beside their requests, 32 KiB each; more "
      "get RESOURCE_EXHAUSTED");
  parser.AddNumber("max_connection_memory_percent", &flags.max_connection_memory_percent, "PERCENT",
                   {1, 100},
                   "Part of these three that the calls of one connection may hold, or four of the "
                   "largest messages if that is more");
  parser.AddNumber(
      "max_waiting_call_bytes", &flags.memory.max_waiting_call_bytes, "BYTES", {1 << 20, kMaxBytes},
      "Memory of all gRPC calls that wait for their clients, to send the message or to "
      "take the end: 20 KiB each, and 256 bytes for each field of a large head; from "
      "three quarters on older ones get RESOURCE_EXHAUSTED, of the connections that "
      "hold most");
  parser.AddNumber("max_attention_tokens", &flags.attention.max_tokens, "TOKENS", {1, kMaxCount},
                   "Most queries and keys of one attention request");
  parser.AddNumber("max_attention_bytes", &flags.attention.max_bytes, "BYTES", {1024, kMaxBytes},
                   "Scratch memory of one attention request during its computation");
  parser.AddNumber("max_attention_operations", &flags.attention.max_operations, "N", {1, kMaxBytes},
                   "Most operations (multiply-adds, and all else in terms of them) of one "
                   "attention request; the "
                   "default is about a second on two cores");
  parser.AddNumber(
      "max_queued_attention_operations", &flags.attention.max_queued_operations, "N",
      {1, kMaxBytes},
      "Most operations of the attention requests that wait, for each module and for the "
      "service; more get RESOURCE_EXHAUSTED; at least max_attention_operations");
  parser.AddNumber("max_stream_requests", &flags.streams.max_requests, "N", {1, kMaxCount},
                   "Most requests of one stream without an answer; the server then stops reading "
                   "the stream");
  parser.AddNumber("max_write_s", &flags.max_write_s, "SECONDS", {1, 86'400},
                   "Longest time that an answer waits for its client to take it; the call is then "
                   "cancelled");
}

void AddConnectionFlags(ConnectionLimits& limits, HttpLimits& http, FlagParser& parser) {
  parser.Section("Connections");
  parser.AddNumber("max_connections", &limits.max_connections, "N", {1, kMaxCount},
                   "Most open connections to the gRPC port; further ones are closed at once. Less "
                   "where the system allows fewer file descriptors");
  parser.AddNumber("max_connections_per_address", &limits.max_connections_per_address, "N",
                   {0, kMaxCount},
                   "Most of them from one IP address; 0 is no limit, for clients behind a proxy");
  parser.AddNumber(
      "max_connection_calls", &limits.max_calls, "N", {1, kMaxMessage},
      "Most calls and streams at the same time on one connection; further calls wait "
      "in the client. Of a client that does not keep to it, those beyond twice as many and 64 "
      "are cancelled");
  parser.AddNumber("max_connection_idle_s", &limits.max_idle_s, "SECONDS", {0, kMaxSeconds},
                   "Time without a call after which a connection is closed; 0 is no limit");
  parser.AddNumber(
      "max_connection_age_s", &limits.max_age_s, "SECONDS", {0, kMaxSeconds},
      "Age at which a connection takes no more calls, so that clients connect anew and "
      "spread over all servers; 0 is no limit");
  parser.AddNumber("max_connection_age_grace_s", &limits.max_age_grace_s, "SECONDS",
                   {0, kMaxSeconds}, "Time that the calls of such a connection have to end");
  parser.AddNumber("max_http_connections", &http.max_connections, "N", {1, kMaxCount},
                   "Most requests in work on the HTTP port, one for each connection; more get 429. "
                   "Beside them 64 connections are for pages and idle clients; then a new one "
                   "takes the place of the one idle for longest. Less where the system allows "
                   "fewer file descriptors");
}

void AddAccessFlags(AccessFlags& flags, FlagParser& parser) {
  parser.Section("Access");
  parser.Add("api_keys", &flags.api_keys, "FILE",
             "Ask for API keys: FILE has a key, its name and its groups of methods (infer, read, "
             "admin) in each line; it is read again every --tls_reload_s");
  parser.Add("access_log", &flags.access_log, "FILE",
             "Write one line of JSON for each request to FILE, or to standard error for '-'; FILE "
             "may be renamed while the server runs");
  parser.AddNumber("access_log_sample", &flags.access_log_sample, "SHARE", {0.0, 1.0},
                   "Share of the requests without an error that the access log has; it has all "
                   "errors");
  parser.AddNumber("access_log_lines_per_s", &flags.access_log_lines_per_s, "N", {1, kMaxCount},
                   "Most lines of the access log in one second; further requests are only counted");
  parser.Add("otlp_endpoint", &flags.otlp_endpoint, "URL",
             "Send the spans of requests to the OpenTelemetry collector at URL, as "
             "http://127.0.0.1:4318; without it OTEL_EXPORTER_OTLP_ENDPOINT of the environment "
             "says where, and other variables of OpenTelemetry how");
  parser.AddChoice<ShowConnections>(
      "connections_page", &flags.connections_page,
      {{"auto", ShowConnections::kAuto},
       {"on", ShowConnections::kOn},
       {"off", ShowConnections::kOff}},
      "Whether the HTTP port has /connections, which shows the addresses of clients and asks for "
      "no key; auto has it if only this machine can connect to that port, and without --api_keys");
}

void AddServerFlags(ServerFlags& flags, FlagParser& parser) {
  parser.Section("Ports, TLS and shutdown");
  parser.Add("listen", &flags.listen, "HOST:PORT", "Address of gRPC; port 0 picks a free port");
  parser.Add("http_listen", &flags.http_listen, "HOST:PORT",
             "Address of HTTP: OpenAI's, TEI's and other JSON protocols, /metrics, /healthz and "
             "/readyz; port 0 picks a free port");
  parser.Add("port_file", &flags.port_file, "FILE",
             "Write the chosen ports to FILE, as the lines grpc=PORT and http=PORT");
  parser.Add("tls_cert", &flags.tls_cert, "FILE",
             "PEM file with the server's certificate chain, for gRPC, and for HTTP with "
             "--http_tls=on; needs --tls_key");
  parser.Add("tls_key", &flags.tls_key, "FILE", "PEM file with the key of --tls_cert");
  parser.Add("tls_client_ca", &flags.tls_client_ca, "FILE",
             "PEM file with authorities; each client of gRPC, and of HTTP with --http_tls=on, must "
             "show a certificate that one of them signed");
  AddOnOff(parser, "http_tls", &flags.http_tls,
           "Whether the HTTP port too speaks TLS, with the files of the gRPC port; scrapers "
           "and probes then do so, and show a certificate with --tls_client_ca");
  AddOnOff(parser, "console", &flags.console,
           "Whether the HTTP port serves the console at /: charts, models, a playground "
           "and attention; the page is open, its data ask for a key with --api_keys");
  parser.AddNumber("tls_reload_s", &flags.tls_reload_s, "SECONDS", {1, kMaxSeconds},
                   "How often the TLS files, for new connections, and --api_keys are read again");
  AddOnOff(parser, "attention", &flags.attention_service,
           "Whether the attention service answers, which computes on the processors of the "
           "encoders");
  parser.AddNumber(
      "attention_nice", &flags.attention_nice, "NICENESS", {0, 19},
      "Niceness of the threads that compute attention, above the process's: at 10, "
      "encoders get nine tenths of the processors that both want, and attention gets all "
      "that encoders leave");
  AddOnOff(parser, "reflection", &flags.reflection,
           "Whether gRPC reflection tells anybody which services there are");
  AddOnOff(parser, "system_shared_memory", &flags.system_shared_memory,
           "Whether KServe clients on this machine may pass tensors in POSIX shared memory; "
           "they reach all that the server's user may open, so trust them");
  parser.AddChoice<Readiness>(
      "strict_readiness", &flags.readiness,
      {{"on", Readiness::kEveryModel}, {"off", Readiness::kAnyModel}},
      "Whether one model that failed keeps the whole server from being ready");
  parser.AddNumber("drain_delay_s", &flags.drain_delay_s, "SECONDS", {0, kMaxSeconds},
                   "Time after SIGTERM in which health says NOT_SERVING and requests are still "
                   "served, until load balancers have seen it");
  parser.AddNumber("drain_timeout_s", &flags.drain_timeout_s, "SECONDS", {0, kMaxSeconds},
                   "Longest time for admitted requests to finish after that");
  parser.Section("Log and help");
  parser.AddChoice("log_format", &flags.log_format, {"text", "json"}, "Form of log lines");
  parser.AddChoice("log_level", &flags.log_level, {"debug", "info", "warn", "error", "off"},
                   "Least severe messages to log");
  parser.AddSwitch("version", &flags.version, "Print the version and end");
  parser.AddSwitch("help", &flags.help, "Print this text and end");
  parser.AddSwitch("help_markdown", &flags.help_markdown,
                   "Print the flags as Markdown tables and end");
}

void AddAllFlags(ServerFlags& flags, FlagParser& parser) {
  AddModelFlags(flags, parser);
  AddHardwareFlags(flags, parser);
  AddBatchingFlags(flags, parser);
  AddLimitFlags(flags, parser);
  AddConnectionFlags(flags.connections, flags.http, parser);
  AddAccessFlags(flags.access, parser);
  AddServerFlags(flags, parser);
}

absl::Status CheckLeast(absl::string_view name, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, " cannot be ", value, ": it must be from ", least, " up"));
}

// An error in the value of a flag, with the flag's name.
absl::Status OfFlag(absl::string_view name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", name, ": ", status.message()));
}

absl::Status CheckCollector(const std::string& url) {
  if (url.empty()) return absl::OkStatus();
  return OfFlag("otlp_endpoint", ParseOtlpCollector(url).status());
}

absl::Status CheckPorts(const ServerFlags& flags) {
  ATTENDANT_RETURN_IF_ERROR(OfFlag("listen", CheckAddress(flags.listen)));
  ATTENDANT_RETURN_IF_ERROR(OfFlag("http_listen", CheckAddress(flags.http_listen)));
  if (flags.listen == flags.http_listen && !absl::EndsWith(flags.listen, ":0")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen and --http_listen are both ", flags.listen, ": each needs its own"));
  }
  return absl::OkStatus();
}

// Checks the rules that the range of one flag cannot express. An empty file name counts as no file.
absl::Status CheckTogether(const ServerFlags& flags) {
  if (flags.max_batch_tokens != 0) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckLeast("max_batch_tokens", flags.max_batch_tokens, kMinBatchTokens));
  }
  ATTENDANT_RETURN_IF_ERROR(
      CheckLeast("max_queued_tokens", flags.max_queued_tokens, flags.max_batch_tokens));
  ATTENDANT_RETURN_IF_ERROR(CheckLeast("max_queued_attention_operations",
                                       flags.attention.max_queued_operations,
                                       flags.attention.max_operations));
  ATTENDANT_RETURN_IF_ERROR(CheckLeast("max_pending_request_bytes",
                                       flags.memory.max_pending_request_bytes,
                                       flags.max_request_bytes));
  ATTENDANT_RETURN_IF_ERROR(CheckLeast("max_pending_response_bytes",
                                       flags.memory.max_pending_response_bytes,
                                       flags.encode.max_response_bytes));
  if (flags.models.empty() && flags.model_repository.empty()) {
    return absl::InvalidArgumentError("no model: give --model NAME=DIR or --model_repository DIR");
  }
  if (flags.model_control == ModelControl::kPoll && flags.model_repository.empty()) {
    return absl::InvalidArgumentError("--model_control=poll needs --model_repository");
  }
  if (flags.tls_cert.empty() != flags.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls_cert and --tls_key go together: one is missing");
  }
  if (!flags.tls_client_ca.empty() && flags.tls_cert.empty()) {
    return absl::InvalidArgumentError("--tls_client_ca needs --tls_cert and --tls_key");
  }
  if (flags.http_tls && flags.tls_cert.empty()) {
    return absl::InvalidArgumentError("--http_tls=on needs --tls_cert and --tls_key");
  }
  ATTENDANT_RETURN_IF_ERROR(CheckPorts(flags));
  return CheckCollector(flags.access.otlp_endpoint);
}

}  // namespace

absl::StatusOr<ServerFlags> ParseServerFlags(std::span<const std::string> arguments) {
  ServerFlags flags;
  FlagParser parser;
  AddAllFlags(flags, parser);
  absl::StatusOr<std::vector<std::string>> words = parser.Parse(arguments);
  if (flags.help || flags.version || flags.help_markdown) return flags;
  if (!words.ok()) return words.status();
  if (!words->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", words->front(), "' is not a flag"));
  }
  flags.models = absl::StrSplit(absl::StrJoin(flags.models, ","), ',', absl::SkipEmpty());
  ATTENDANT_RETURN_IF_ERROR(CheckTogether(flags));
  return flags;
}

std::string ServerHelp() {
  ServerFlags defaults;
  FlagParser parser;
  AddAllFlags(defaults, parser);
  return absl::StrCat(
      "attendant-server serves transformer encoders over gRPC and HTTP.\n\n"
      "  attendant-server --model NAME=DIR [flags]\n\n",
      parser.Help());
}

std::string ServerFlagsMarkdown() {
  ServerFlags defaults;
  FlagParser parser;
  AddAllFlags(defaults, parser);
  return parser.Markdown("##");
}

}  // namespace attendant
