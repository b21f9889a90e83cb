// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant {

// The server's limits on its clients, with their defaults, which are stated here only. ServerFlags
// holds one of each; docs/limits.md has what happens at each limit.

// Limits of one encode request, in every protocol.
struct EncodeLimits {
  int64_t max_request_sequences = 4096;
  int64_t max_response_bytes = int64_t{64} << 20;  // of tensors, as f32
  // The share of attention weights in an answer: all 16 heads of two layers for 512 tokens, or all
  // of BERT-base for 240 tokens.
  int64_t max_attention_weight_bytes = int64_t{32} << 20;
};

// Limits of one attention request.
struct AttentionLimits {
  int64_t max_tokens = 65536;              // queries and keys of all its sequences
  int64_t max_bytes = int64_t{256} << 20;  // scratch memory while it is computed
  // Operations of one request, as kernels/attention counts them: about 1.3 s on two Zen 4 cores.
  int64_t max_operations = int64_t{1} << 37;
  int64_t max_queued_operations = int64_t{1} << 40;  // of all requests that wait for one model
};

// The memory of all requests, answers, streams and waiting calls together.
struct MemoryLimits {
  int64_t max_pending_request_bytes = int64_t{512} << 20;
  int64_t max_pending_response_bytes = int64_t{1} << 30;  // 2^18 tokens of hidden size 1024
  int64_t max_open_stream_bytes = int64_t{256} << 20;     // 8192 streams that wait for messages
  int64_t max_waiting_call_bytes = int64_t{128} << 20;    // 4915 calls without a message
  // The part of one connection's calls.
  int64_t connection_request_bytes = int64_t{128} << 20;
  int64_t connection_response_bytes = int64_t{256} << 20;
  int64_t connection_stream_bytes = int64_t{64} << 20;
};

// The connections of the gRPC port.
struct ConnectionLimits {
  int64_t max_connections = 8192;           // and no more than there are descriptors for
  int64_t max_connections_per_address = 0;  // 0: no limit
  int64_t max_calls = 4096;                 // on one connection, at the same time
  int64_t max_idle_s = 600;                 // without a call; 0: no limit
  int64_t max_age_s = 0;                    // 0: no limit
  int64_t max_age_grace_s = 60;             // for the calls of a connection of that age
};

inline constexpr int64_t kDefaultMaxRequestBytes = int64_t{16} << 20;  // of one message

// The protocols on the HTTP port.
struct HttpLimits {
  // Connections for pages, in addition to those of requests, so that a probe always gets one.
  static constexpr int64_t kPageConnections = 64;

  int64_t max_connections = 1024;                       // with a request in work
  int64_t max_request_bytes = kDefaultMaxRequestBytes;  // of one body, and inflated
  int64_t max_write_s = 30;                             // for the client to take its answer
};

// The bounds of one stream on requests without an answer, and on answers that its client has not
// read. At a bound the server stops reading, and flow control holds the client back.
struct StreamLimits {
  int64_t max_requests = 256;
  // of requests in work, their answers, and unread ones
  int64_t max_bytes = 2 * kDefaultMaxRequestBytes;
};

}  // namespace attendant
