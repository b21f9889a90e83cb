// SPDX-License-Identifier: Apache-2.0
#include "tests/server/gated_backend.h"

#include <utility>

#include "kernels/reference/reference_backend.h"

namespace attendant {
namespace {

class GatedSession : public Session {
 public:
  GatedSession(std::unique_ptr<Session> session, Gate& gate)
      : session_(std::move(session)), gate_(gate) {}

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override {
    gate_.Pass();
    if (gate_.lost()) return absl::UnavailableError("the device is lost");
    return session_->Run(batch, spec, outputs);
  }

  void PlaceCaller() override { session_->PlaceCaller(); }
  int64_t arena_bytes() const override { return session_->arena_bytes(); }

 private:
  const std::unique_ptr<Session> session_;
  Gate& gate_;
};

class GatedEncoder : public PreparedEncoder {
 public:
  GatedEncoder(std::unique_ptr<PreparedEncoder> encoder, Gate& gate)
      : encoder_(std::move(encoder)), gate_(gate) {}

  const EncoderConfig& config() const override { return encoder_->config(); }
  const PreparedInfo& info() const override { return encoder_->info(); }
  const cpu::IsaLevel* cpu_level() const override { return encoder_->cpu_level(); }

  absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits& limits,
                                                      const ThreadTeam& team) const override {
    absl::StatusOr<std::unique_ptr<Session>> session = encoder_->NewSession(limits, team);
    if (!session.ok()) return session;
    return std::make_unique<GatedSession>(*std::move(session), gate_);
  }

 private:
  const std::unique_ptr<PreparedEncoder> encoder_;
  Gate& gate_;
};

class GatedBackend : public Backend {
 public:
  explicit GatedBackend(Gate& gate) : gate_(gate) {}

  absl::string_view name() const override { return "gated"; }
  absl::Status Supports(DType dtype) const override { return reference_->Supports(dtype); }
  DType preferred_dtype() const override { return DType::kF32; }

  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    absl::StatusOr<std::unique_ptr<PreparedEncoder>> encoder =
        reference_->Prepare(config, std::move(weights), dtype);
    if (!encoder.ok()) return encoder;
    return std::make_unique<GatedEncoder>(*std::move(encoder), gate_);
  }

 private:
  const std::unique_ptr<Backend> reference_ = MakeReferenceBackend();
  Gate& gate_;
};

}  // namespace

void Gate::Close() {
  absl::MutexLock lock(&mutex_);
  open_ = false;
}

void Gate::Open() {
  absl::MutexLock lock(&mutex_);
  open_ = true;
}

void Gate::Let(int count) {
  absl::MutexLock lock(&mutex_);
  let_ += count;
}

void Gate::Pass() {
  const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_ || let_ > 0; };
  absl::MutexLock lock(&mutex_);
  ++waiting_;
  mutex_.Await(absl::Condition(&may));
  --waiting_;
  if (!open_) --let_;
}

void Gate::Lose() {
  absl::MutexLock lock(&mutex_);
  lost_ = true;
}

bool Gate::lost() {
  absl::MutexLock lock(&mutex_);
  return lost_;
}

void Gate::AwaitWaiting(int count) {
  const auto there = [this, count]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_ >= count; };
  absl::MutexLock lock(&mutex_, absl::Condition(&there));
}

std::unique_ptr<Backend> MakeGatedBackend(Gate& gate) {
  return std::make_unique<GatedBackend>(gate);
}

}  // namespace attendant
