// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/access_log.h"
#include "server/access/api_keys.h"
#include "server/access/connections.h"
#include "server/access/id_source.h"
#include "server/access/key_store.h"
#include "server/access/trace_context.h"
#include "server/metrics/server_metrics.h"

namespace attendant {

struct CallMethod {
  std::string name;  // "attendant.v1.Encoder/Encode"
  MethodGroup group;
};

// A call as its transport knows it before it reads the message.
struct CallHead {
  const CallMethod& method;  // outlives the call
  std::string peer;          // names the connection: "ipv4:127.0.0.1:40312"
  // The value of a header, by its name in lower case. Nothing unless it was sent exactly once.
  absl::FunctionRef<std::optional<absl::string_view>(absl::string_view name)> header;
};

// Who calls, and the names that the call has in logs. Immutable. Lasts as long as the call.
struct CallInfo {
  const CallMethod& method;
  OpenCall connection;
  std::string key;                    // the name of its API key; empty: none was needed
  std::string request_id;             // empty: the answer carries none
  std::optional<TraceContext> trace;  // the server's own span
};

// How a request ended.
struct CallEnd {
  absl::string_view model = {}, message_id = {};
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t sequences = 0, tokens = 0;
  int64_t request_bytes = 0, response_bytes = 0;
  absl::Duration total = {}, tokenize = {}, queue = {}, compute = {}, serialize = {};
};

// Every call of every protocol passes here before its message is looked at, and each of its
// requests when it ends. Knows no transport. Thread-safe.
//
// A call has a request id when the client sent one (x-request-id) or the access log is on. It has a
// trace when the client sent a valid traceparent.
class CallGate {
 public:
  // Without `keys`, anybody may call everything. All must outlive the gate.
  explicit CallGate(ServerMetrics& metrics, const KeyStore* keys = nullptr,
                    AccessLog* log = nullptr);

  struct Entry {
    std::shared_ptr<const CallInfo> call;
    // UNAUTHENTICATED or PERMISSION_DENIED: counted and logged; the transport ends the call so.
    absl::Status status;
  };
  Entry Enter(const CallHead& head);

  // Counts a request of the call, and writes its line.
  void Ended(const CallInfo& call, const CallEnd& end);
  // A message that a method without tensors refused.
  void CountMalformed() { metrics_.CountRefused(Refusal::kMessage); }

  bool logging() const { return log_ != nullptr; }
  const ConnectionTable& connections() const { return connections_; }

 private:
  absl::StatusOr<std::string> Authorize(const CallHead& head) const;
  std::string RequestId(const CallHead& head);
  std::optional<TraceContext> Trace(const CallHead& head);
  void Refused(const CallInfo& call, const absl::Status& status);
  void Log(const CallInfo& call, const CallEnd& end);

  ServerMetrics& metrics_;
  const KeyStore* const keys_;
  AccessLog* const log_;
  IdSource ids_;
  ConnectionTable connections_;
};

}  // namespace attendant
