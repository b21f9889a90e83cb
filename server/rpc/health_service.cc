// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/health_service.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/rpc/call/calls.h"

namespace attendant {

// A longer name is cut, and stays unknown: names that are served have at most 128 bytes.
constexpr size_t kKeptNameBytes = 256;

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// One Watch call: reads the name, then writes its latest status whenever that differs from the last
// one written. Owns itself.
class HealthService::Watcher final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, HealthCheckResponse> {
 public:
  Watcher(HealthService& service, const IncomingCall& call) : service_(service), call_(call) {
    StartRead(&message_);
  }

  // Set once the client has sent it. Guarded by the service's mutex.
  std::optional<std::string> name;

  // The call goes on with the status of its name, or ends with `refused`.
  void Begin(const absl::Status& refused, ServingStatus status) {
    absl::MutexLock lock(&mutex_);
    if (finished_) return;
    AddCallMetadata(*call_.info, refused.ok(), call_.context);
    if (refused.ok()) {
      latest_ = status;
    } else {
      closing_ = true;
      end_ = ToGrpcStatus(refused);
    }
    Advance();
  }

  void Notify(ServingStatus status) {
    absl::MutexLock lock(&mutex_);
    latest_ = status;
    Advance();
  }

  // Ends the call, with UNAVAILABLE.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    Advance();
  }

  void OnReadDone(bool ok) override {
    if (!has_ended()) service_.BeginWatch(*this, call_, ok, message_);
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) closing_ = true;
    Advance();
  }

  void OnCancel() override { Close(); }

  void OnDone() override {
    service_.RemoveWatcher(this);
    delete this;
  }

 private:
  bool has_ended() {
    absl::MutexLock lock(&mutex_);
    return finished_;
  }

  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (latest_ != written_) {
      written_ = latest_;
      response_.set_status(*latest_);
      writing_ = true;
      StartWrite(&response_);
    } else if (closing_) {
      finished_ = true;
      Finish(end_);
    }
  }

  HealthService& service_;
  const IncomingCall call_;  // its context lives until OnDone
  grpc::ByteBuffer message_;
  absl::Mutex mutex_;
  HealthCheckResponse response_ ABSL_GUARDED_BY(mutex_);  // while it is written
  std::optional<ServingStatus> latest_ ABSL_GUARDED_BY(mutex_);
  std::optional<ServingStatus> written_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status end_ ABSL_GUARDED_BY(mutex_){grpc::StatusCode::UNAVAILABLE,
                                            "the server is stopping"};
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

HealthService::HealthService(CallGate& gate, MemoryBudgets& budgets,
                             const std::vector<std::string>& names)
    : RawService(gate, budgets) {
  absl::MutexLock lock(&mutex_);
  serving_[""] = false;
  for (const std::string& name : names) serving_[name] = false;
  ServeSmall<HealthCheckRequest, HealthCheckResponse>(
      "Check", MethodGroup::kOpen,
      [this](const HealthCheckRequest& request, HealthCheckResponse& response) {
        return AnswerCheck(request, response);
      });
  ServeWriter<HealthCheckResponse>("Watch", MethodGroup::kOpen,
                                   [this](IncomingCall& call) { return StartWatch(call); });
}

void HealthService::Set(std::map<std::string, bool> serving) {
  absl::MutexLock lock(&mutex_);
  if (draining_) return;
  serving_ = std::move(serving);
  NotifyWatchers();
}

void HealthService::Drain() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  for (auto& [name, serving] : serving_) serving = false;
  NotifyWatchers();
}

void HealthService::CloseWatches() {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
  for (Watcher* watcher : watchers_) watcher->Close();
}

absl::Status HealthService::AnswerCheck(const HealthCheckRequest& request,
                                        HealthCheckResponse& response) {
  absl::MutexLock lock(&mutex_);
  const ServingStatus status = Status(request.service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return absl::NotFoundError("there is no service of this name");
  }
  response.set_status(status);
  return absl::OkStatus();
}

HealthService::Watcher* HealthService::StartWatch(const IncomingCall& call) {
  auto* watcher = new Watcher(*this, call);
  absl::MutexLock lock(&mutex_);
  watchers_.insert(watcher);
  if (closing_) watcher->Close();
  return watcher;
}

void HealthService::BeginWatch(Watcher& watcher, const IncomingCall& call, bool has_message,
                               grpc::ByteBuffer& message) {
  HealthCheckRequest request;
  const absl::Status refused = has_message ? ReadSmall(message, request) : EndUnheard(call);
  message.Clear();  // the call may stay open for long
  absl::MutexLock lock(&mutex_);
  watcher.name = request.service().substr(0, kKeptNameBytes);
  watcher.Begin(refused, Status(*watcher.name));
}

HealthService::ServingStatus HealthService::Status(const std::string& name) const {
  const auto found = serving_.find(name);
  if (found == serving_.end()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return found->second ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void HealthService::NotifyWatchers() {
  for (Watcher* watcher : watchers_) {
    if (watcher->name.has_value()) watcher->Notify(Status(*watcher->name));
  }
}

void HealthService::RemoveWatcher(Watcher* watcher) {
  absl::MutexLock lock(&mutex_);
  watchers_.erase(watcher);
}

}  // namespace attendant
