// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/threads/cpu_placement.h"
#include "server/limits/limits.h"
#include "server/models/registry/registry_options.h"

namespace attendant {

// The values of --connections_page: serve the page with the addresses of clients, or not.
enum class ShowConnections {
  kAuto,  // where only this machine can connect, and there are no API keys
  kOn,
  kOff
};

// Access to the server, and its records of calls.
struct AccessFlags {
  std::string api_keys;    // a file; empty: anybody may call
  std::string access_log;  // a file, or "-"; empty: none
  double access_log_sample = 1;
  int64_t access_log_lines_per_s = 1000;
  ShowConnections connections_page = ShowConnections::kAuto;
  std::string otlp_endpoint;  // a collector's URL; empty: the environment may name one
};

// The command line of attendant-server. `attendant-server --help` explains each flag.
struct ServerFlags {
  std::string listen = "127.0.0.1:8001";
  std::string http_listen = "127.0.0.1:8002";
  std::string port_file;

  std::vector<std::string> models;          // NAME=DIR
  std::vector<std::string> model_adapters;  // NAME=ADAPTER
  std::vector<std::string> model_weights;   // NAME=WEIGHT
  std::string model_repository;
  ModelControl model_control = ModelControl::kNone;
  int64_t max_model_versions = 1;
  int64_t repository_poll_s = 5;
  int64_t unload_idle_s = 0;    // 0: never
  int64_t max_model_bytes = 0;  // 0: no limit but the machine's
  std::string dtype = "auto";
  std::string backend = "auto";
  std::string cuda_library;
  std::string cuda_devices = "all";
  int threads = 0;
  int replicas = 0;
  PinThreads pin_threads = PinThreads::kAuto;
  std::string cpu_isa = "auto";
  std::string matmul = "auto";

  int64_t max_batch_tokens = 0;     // 0: the back end's default
  int64_t max_batch_sequences = 0;  // likewise
  int64_t max_queued_tokens = 262144;
  int64_t max_queued_requests = 4096;
  int64_t max_queue_delay_us = 0;
  int max_priority = 0;
  int64_t max_priority_wait_ms = 1000;
  int64_t stall_timeout_s = 30;
  int64_t max_request_bytes = kDefaultMaxRequestBytes;
  EncodeLimits encode;
  AttentionLimits attention;
  MemoryLimits memory;  // without those of a connection, which follow from the next line
  int64_t max_connection_memory_percent = 25;
  StreamLimits streams;  // without max_bytes, which follows from max_request_bytes
  ConnectionLimits connections;
  HttpLimits http;  // its number of connections; the rest follows from other flags
  int64_t max_write_s = 30;
  Readiness readiness = Readiness::kAnyModel;
  int64_t drain_delay_s = 0;
  int64_t drain_timeout_s = 25;  // Kubernetes kills after 30

  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  int64_t tls_reload_s = 60;
  bool http_tls = false;
  bool console = true;
  bool reflection = true;
  AccessFlags access;
  bool attention_service = true;
  int attention_nice = 10;
  bool system_shared_memory = false;

  std::string log_format = "text";
  std::string log_level = "info";
  bool version = false;
  bool help = false;
  bool help_markdown = false;
};

// `arguments` without the program's name. INVALID_ARGUMENT names the flag, its value and the values
// that it may have. With --help, --help_markdown or --version nothing is checked.
absl::StatusOr<ServerFlags> ParseServerFlags(std::span<const std::string> arguments);

// The flags for a terminal, and as the tables of docs/flags.md.
std::string ServerHelp();
std::string ServerFlagsMarkdown();

}  // namespace attendant
