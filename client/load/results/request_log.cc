// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/request_log.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace attendant::client {
namespace {

using LogJson = nlohmann::ordered_json;

LogJson Milliseconds(absl::Duration time) {
  return {{"value", absl::ToDoubleMilliseconds(time)}, {"unit", "ms"}};
}

LogJson ErrorOf(const CallResult& result) {
  if (result.code == grpc::StatusCode::OK) return nullptr;
  return {{"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(result.code))},
          {"message", result.message}};
}

}  // namespace

void RequestLog::Add(const CallTimes& times, const CallResult& result) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back({.times = times, .result = result});
}

void RequestLog::Flush() {
  std::vector<Call> calls;
  {
    absl::MutexLock lock(&mutex_);
    calls.swap(calls_);
  }
  for (const Call& call : calls) Write(call);
}

void RequestLog::Write(const Call& call) {
  const CallTimes& times = call.times;
  const auto epoch_ns = [this](absl::Duration time) { return absl::ToUnixNanos(origin_ + time); };
  LogJson line;
  line["metadata"] = {{"session_num", num_written_++},
                      {"request_start_ns", epoch_ns(times.sent)},
                      {"request_end_ns", epoch_ns(times.finished)},
                      {"intended_start_ns", epoch_ns(times.intended)},
                      {"benchmark_phase", times.intended < warmup_ ? "warmup" : "profiling"}};
  line["metrics"] = {{"request_latency", Milliseconds(times.finished - times.sent)},
                     {"response_time", Milliseconds(times.finished - times.intended)},
                     {"send_lag", Milliseconds(times.sent - times.intended)}};
  if (call.result.tokens.has_value()) {
    line["metrics"]["input_sequence_length"] = {{"value", *call.result.tokens}, {"unit", "tokens"}};
  }
  line["error"] = ErrorOf(call.result);
  out_ << line.dump(-1, ' ', false, LogJson::error_handler_t::replace) << "\n";
}

}  // namespace attendant::client
