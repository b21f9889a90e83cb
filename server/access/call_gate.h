// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/access_log.h"
#include "server/access/api_keys.h"
#include "server/access/connections.h"
#include "server/access/key_store.h"
#include "server/access/trace_context.h"
#include "server/limits/limits.h"
#include "server/metrics/server_metrics.h"
#include "server/tracing/export/tracer.h"
#include "server/tracing/id_source.h"
#include "server/tracing/request_trace.h"
#include "server/tracing/traced_batch.h"

namespace attendant {

struct CallMethod {
  std::string name;  // "attendant.v1.Encoder/Encode"
  MethodGroup group;
  bool routine = false;  // asked for every second: access log and traces have its errors only
  bool streams = false;  // a call may have many requests
  bool unknown = false;  // no service has it: its calls are refused
};

// A call as its transport knows it before it reads the message.
struct CallHead {
  const CallMethod& method;  // outlives the call
  std::string peer;          // names the connection: "ipv4:127.0.0.1:40312"
  // The value of a header, by its name in lower case. Nothing unless it was sent exactly once.
  absl::FunctionRef<std::optional<absl::string_view>(absl::string_view name)> header;
};

// The caller, and the call's names in logs. Lasts as long as the call. Thread-safe.
struct CallInfo {
  const CallMethod& method;
  OpenCall connection;
  std::string key;                    // the name of its API key; empty: none was needed
  std::string request_id;             // empty: the answer carries none
  std::optional<TraceContext> trace;  // the server's own span
  // One number for each key, or for each connection where keys are not needed: its requests take
  // their turns in queues together.
  uint64_t client = 0;
  // The span of a stream whose spans are sent; it is added at the end of the call.
  std::unique_ptr<OpenSpan> stream_span = nullptr;
  // For Recheck: the digest of the key, and the KeyStore's generation that has had it.
  Sha256Digest key_digest = {};
  mutable std::atomic<uint64_t> key_generation = 0;
};

// The end of a request.
struct CallEnd {
  absl::string_view model = {}, message_id = {};
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t sequences = 0, tokens = 0;
  int64_t request_bytes = 0, response_bytes = 0;
  absl::Duration total = {}, tokenize = {}, queue = {}, compute = {}, serialize = {};
  // For a request that RequestSpan gave a span: its number, and the fields that only traces show.
  uint64_t span = 0;
  std::optional<absl::Time> arrival = {};         // of the steady clock
  absl::Duration submitted = {}, answering = {};  // since arrival
  std::span<const TracedBatch> batches = {};
};

// Every call of every protocol passes here before its message is looked at, and each of its
// requests when it ends. Knows no transport. Thread-safe.
//
// A call has a request id when the client sent one (x-request-id) or the access log is on. It has a
// trace when the client sent a valid traceparent or there is a tracer. Calls that are refused here
// have no spans: callers without a key cannot fill the tracer's queue.
class CallGate {
 public:
  // Without `keys`, anybody may call everything. All must outlive the gate and its calls. A
  // connection may have `max_calls` calls at one time, and as many that have ended while this side
  // has not noticed.
  explicit CallGate(ServerMetrics& metrics, const KeyStore* keys = nullptr,
                    AccessLog* log = nullptr, Tracer* tracer = nullptr,
                    int64_t max_calls = ConnectionLimits().max_calls);

  struct Entry {
    std::shared_ptr<const CallInfo> call;
    // UNAUTHENTICATED, PERMISSION_DENIED, UNIMPLEMENTED for an unknown method, or
    // RESOURCE_EXHAUSTED for a connection of too many calls, whatever their keys: counted and
    // logged; the transport ends the call so.
    absl::Status status;
  };
  Entry Enter(const CallHead& head);

  // Looks at the key of a call whose client sends a further message. UNAUTHENTICATED or
  // PERMISSION_DENIED, as for a new call: the key is gone, or its group; counted and logged; the
  // transport ends the call so. Costs one atomic read unless the keys have changed.
  absl::Status Recheck(const CallInfo& call);

  // The number of the span of a request that begins; 0: its spans are not sent.
  uint64_t RequestSpan(const CallInfo& call);

  // Counts a request of the call, writes its line, and leaves its trace.
  void Ended(const CallInfo& call, const CallEnd& end);
  // A message that a method without tensors refused.
  void CountMalformed() { metrics_.CountRefused(Refusal::kMessage); }

  bool logging() const { return log_ != nullptr; }
  const ConnectionTable& connections() const { return connections_; }

 private:
  absl::Status CheckCalls(const OpenCall& connection) const;
  absl::StatusOr<KeyStore::Grant> Authorize(const CallHead& head) const;
  std::string RequestId(const CallHead& head);
  std::optional<TraceContext> Trace(const CallHead& head);
  // The trace of a call whose spans are sent.
  static RequestTrace TraceOf(const CallInfo& call, RequestTrace::Kind kind, uint64_t span);
  std::unique_ptr<OpenSpan> OpenStream(const CallInfo& call);
  bool Traces(const CallInfo& call) const {
    return tracer_ != nullptr && call.trace.has_value() && call.trace->sampled;
  }
  void Refused(const CallInfo& call, const absl::Status& status);
  void Log(const CallInfo& call, const CallEnd& end, uint64_t span);
  void AddTrace(const CallInfo& call, const CallEnd& end, uint64_t span);

  ServerMetrics& metrics_;
  const KeyStore* const keys_;
  AccessLog* const log_;
  Tracer* const tracer_;
  const int64_t max_calls_;
  IdSource ids_;
  ConnectionTable connections_;
};

}  // namespace attendant
