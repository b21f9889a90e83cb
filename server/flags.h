// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

// The command line of attendant-server. `attendant-server --help` explains each flag.
struct ServerFlags {
  std::string listen = "127.0.0.1:8001";
  std::string http_listen = "127.0.0.1:8002";
  std::string port_file;

  std::vector<std::string> models;  // NAME=DIR
  std::string model_repository;
  std::string dtype = "auto";
  std::string backend = "auto";
  std::string cuda_library;
  std::string cuda_devices = "all";
  int threads = 0;
  int replicas = 0;
  std::string pin_threads = "auto";
  std::string cpu_isa = "auto";

  int64_t max_batch_tokens = 0;     // 0: the back end's default
  int64_t max_batch_sequences = 0;  // likewise
  int64_t max_queued_tokens = 262144;
  int64_t max_queued_requests = 4096;
  int64_t max_queue_delay_us = 0;
  int64_t max_request_bytes = int64_t{16} << 20;
  int64_t max_request_sequences = 4096;
  int64_t max_response_bytes = int64_t{64} << 20;
  // all 16 heads of two layers of 512 tokens, all of BERT-base for 240
  int64_t max_attention_weight_bytes = int64_t{32} << 20;
  int64_t max_pending_request_bytes = int64_t{512} << 20;
  // max_queued_tokens of hidden size 1024
  int64_t max_pending_response_bytes = int64_t{1} << 30;
  int64_t max_attention_tokens = 65536;
  int64_t max_attention_bytes = int64_t{256} << 20;
  int64_t max_attention_operations = int64_t{1} << 40;  // seconds on two cores
  int64_t max_stream_requests = 256;
  int64_t max_connection_calls = 4096;
  int64_t drain_timeout_s = 25;  // Kubernetes kills after 30

  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;

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
