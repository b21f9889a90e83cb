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

// One Watch call: writes the latest status whenever it differs from the last one written. Owns
// itself.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService& service, std::shared_ptr<const CallInfo> call, std::string name)
      : service_(service), call_(std::move(call)), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  void Notify(ServingStatus status) {
    absl::MutexLock lock(&mutex_);
    latest_ = status;
    Advance();
  }

  // Ends the call; with UNAVAILABLE where `error` is OK.
  void Close(const absl::Status& error = absl::OkStatus()) {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    if (!error.ok()) end_ = ToGrpcStatus(error);
    Advance();
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
  const std::shared_ptr<const CallInfo> call_;
  const std::string name_;
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
  ServeWriter<HealthCheckResponse>(
      "Watch", MethodGroup::kOpen,
      [this](IncomingCall& call, grpc::ByteBuffer& request) { return StartWatch(call, request); });
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

HealthService::Watcher* HealthService::StartWatch(IncomingCall& call, grpc::ByteBuffer& bytes) {
  HealthCheckRequest request;
  const absl::Status refused = ReadSmall(bytes, request);
  bytes.Clear();  // the call may stay open for long
  AddCallMetadata(*call.info, refused.ok(), call.context);
  auto* watcher = new Watcher(*this, call.info, request.service().substr(0, kKeptNameBytes));
  absl::MutexLock lock(&mutex_);
  watchers_.insert(watcher);
  if (refused.ok()) watcher->Notify(Status(watcher->name()));
  if (closing_ || !refused.ok()) watcher->Close(refused);
  return watcher;
}

HealthService::ServingStatus HealthService::Status(const std::string& name) const {
  const auto found = serving_.find(name);
  if (found == serving_.end()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return found->second ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void HealthService::NotifyWatchers() {
  for (Watcher* watcher : watchers_) watcher->Notify(Status(watcher->name()));
}

void HealthService::RemoveWatcher(Watcher* watcher) {
  absl::MutexLock lock(&mutex_);
  watchers_.erase(watcher);
}

}  // namespace attendant
