// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/cuda_encoder.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/backends/cuda_library.h"
#include "kernels/backends/cuda_translation.h"
#include "kernels/core/base/token_scales.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr std::array<absl::string_view, ATTENDANT_CUDA_NUM_GROUPS> kGroupNames = {
    "embed", "products", "attention", "norm", "activation", "output"};

void Add(const AttendantCudaProfile& profile, AttendantCudaProfile& sum) {
  sum.busy_seconds += profile.busy_seconds;
  sum.sampled_runs += profile.sampled_runs;
  for (int i = 0; i < ATTENDANT_CUDA_NUM_GROUPS; ++i) {
    sum.group_seconds[i] += profile.group_seconds[i];
  }
}

absl::Status OnDevice(int device, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("GPU ", device, ": ", status.message()));
}

}  // namespace

// One of the library's sessions. It is on its place's list while it lives.
class CudaEncoder::CudaSession final : public Session {
 public:
  CudaSession(const CudaEncoder& encoder, const Place& place, const SessionLimits& limits)
      : encoder_(encoder), place_(place), limits_(limits) {
    sequences_.reserve(static_cast<size_t>(limits.max_batch_sequences));
    layers_.reserve(static_cast<size_t>(limits.max_batch_sequences));
    if (drops()) token_scales_.resize(static_cast<size_t>(limits.max_batch_tokens));
  }

  ~CudaSession() override {
    if (session_ == nullptr) return;
    encoder_.Leave(place_, *this);
    encoder_.cuda_.destroy_session(session_);
  }

  absl::Status Start() {
    const AttendantCudaLimits limits{limits_.max_batch_tokens, limits_.max_batch_sequences};
    return FromCudaStatus(encoder_.cuda_.create_session(place_.model.get(), &limits, &session_));
  }

  absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) override {
    ATTENDANT_RETURN_IF_ERROR(CheckSessionLimits(batch, spec, limits_));
    if (drops()) WriteTokenScales(batch, encoder_.config_.dropped_token, token_scales_.data());
    const AttendantCudaBatch cuda_batch{.tokens = batch.tokens(),
                                        .batch = batch.batch(),
                                        .token_ids = batch.token_ids().data(),
                                        .positions = batch.positions().data(),
                                        .segment_ids = batch.segment_ids().data(),
                                        .seq_starts = batch.seq_starts().data(),
                                        .token_scales = drops() ? token_scales_.data() : nullptr,
                                        .keys = batch.keys().data()};
    const AttendantCudaOutputSpec cuda_spec = Translate(spec);
    AttendantCudaOutputs cuda_outputs{};
    if (absl::Status status =
            FromCudaStatus(encoder_.cuda_.run(session_, &cuda_batch, &cuda_spec, &cuda_outputs));
        !status.ok()) {
      return OnDevice(place_.device.index, status);
    }
    const int64_t hidden = encoder_.config_.hidden;
    outputs = {};
    if (cuda_outputs.last_hidden_state != nullptr) {
      outputs.last_hidden_state = {cuda_outputs.last_hidden_state, {batch.tokens(), hidden}};
    }
    if (cuda_outputs.pooled != nullptr) {
      outputs.pooled = {cuda_outputs.pooled, {batch.batch(), hidden}};
    }
    return absl::OkStatus();
  }

  int64_t arena_bytes() const override { return encoder_.cuda_.session_bytes(session_); }

  AttendantCudaProfile profile() const {
    AttendantCudaProfile profile{};
    encoder_.cuda_.profile(session_, &profile);
    return profile;
  }

 private:
  bool drops() const { return encoder_.config_.dropped_token >= 0; }

  AttendantCudaOutputSpec Translate(const OutputSpec& spec) {
    sequences_.clear();
    layers_.clear();
    for (const SequenceOutputs& wanted : spec.sequences) {
      sequences_.push_back(CudaSequenceOutputs(wanted));
    }
    for (const LayerOutputs& wanted : spec.layers) layers_.push_back(CudaLayerOutputs(wanted));
    return {.sequences = sequences_.data(), .layers = layers_.empty() ? nullptr : layers_.data()};
  }

  const CudaEncoder& encoder_;
  const Place& place_;
  const SessionLimits limits_;
  AttendantCudaSession* session_ = nullptr;
  std::vector<float> token_scales_;                      // [max tokens], where a token is dropped
  std::vector<AttendantCudaSequenceOutputs> sequences_;  // [batch]
  std::vector<AttendantCudaLayerOutputs> layers_;        // [batch], or empty
};

absl::StatusOr<std::unique_ptr<CudaEncoder>> CudaEncoder::Create(
    const AttendantCudaInterface& cuda, const std::vector<CudaDevice>& devices,
    const EncoderConfig& config, const EncoderWeights& weights, DType dtype) {
  ATTENDANT_RETURN_IF_ERROR(ValidateWeights(config, weights));
  ATTENDANT_RETURN_IF_ERROR(CheckComputed("cuda", ComputedByCuda(config), config));
  try {
    return Upload(cuda, devices, config, CudaWeights(config, weights), dtype);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the model's tables do not fit in memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot prepare the model: ", error.what()));
  }
}

absl::StatusOr<std::unique_ptr<CudaEncoder>> CudaEncoder::Upload(
    const AttendantCudaInterface& cuda, const std::vector<CudaDevice>& devices,
    const EncoderConfig& config, const CudaWeights& weights, DType dtype) {
  const AttendantCudaConfig cuda_config = CudaConfig(config);
  std::unique_ptr<CudaEncoder> encoder(new CudaEncoder(cuda, config));
  encoder->info_.backend = "cuda";
  encoder->info_.matmul_implementation = "cublasLt";
  encoder->info_.dtype = dtype;
  for (const CudaDevice& device : devices) {
    AttendantCudaModel* model = nullptr;
    const absl::Status status = FromCudaStatus(
        cuda.create_model(device.index, &cuda_config, &weights.view(), CudaDType(dtype), &model));
    if (!status.ok()) return OnDevice(device.index, status);
    Place place{.device = device, .model = {model, ModelDeleter{&cuda}}, .sessions = {}};
    encoder->info_.weight_bytes += cuda.model_bytes(model);
    encoder->info_.isa = absl::StrCat("sm_", device.description.compute_capability);
    encoder->places_.push_back(std::move(place));
  }
  return encoder;
}

absl::StatusOr<std::unique_ptr<Session>> CudaEncoder::NewSession(const SessionLimits& limits,
                                                                 const ThreadTeam& /*team*/) const {
  const Place* place = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    place = &*std::min_element(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return a.sessions.size() < b.sessions.size();
    });
  }
  try {
    auto session = std::make_unique<CudaSession>(*this, *place, limits);
    if (absl::Status status = session->Start(); !status.ok()) {
      return OnDevice(place->device.index, status);
    }
    absl::MutexLock lock(&mutex_);
    place->sessions.push_back(session.get());
    return session;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the session does not fit in memory");
  }
}

void CudaEncoder::Leave(const Place& place, const CudaSession& session) const {
  absl::MutexLock lock(&mutex_);
  place.sessions.erase(std::remove(place.sessions.begin(), place.sessions.end(), &session),
                       place.sessions.end());
  Add(session.profile(), place.ended);
}

std::vector<DeviceUse> CudaEncoder::device_use() const {
  std::vector<DeviceUse> uses;
  for (const Place& place : places_) {
    DeviceUse use;
    use.device = place.device.index;
    use.name = place.device.description.name;
    int64_t free_bytes = 0;
    int64_t total_bytes = place.device.description.memory_bytes;
    const absl::Status status =
        FromCudaStatus(cuda_.device_memory(place.device.index, &free_bytes, &total_bytes));
    use.memory_total_bytes = total_bytes;
    if (status.ok()) use.memory_used_bytes = total_bytes - free_bytes;
    AttendantCudaProfile sum{};
    {
      absl::MutexLock lock(&mutex_);
      Add(place.ended, sum);
      for (const CudaSession* session : place.sessions) Add(session->profile(), sum);
    }
    use.busy_seconds = sum.busy_seconds;
    for (size_t i = 0; i < kGroupNames.size(); ++i) {
      use.groups.push_back({kGroupNames[i], sum.group_seconds[i]});
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace attendant
