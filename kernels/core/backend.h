// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/outputs.h"
#include "kernels/core/packed_batch.h"
#include "kernels/core/threads/thread_team.h"

namespace attendant {

// The number format of weights and activations. Accumulation and statistics are f32 in all of them.
// kFp8 is e4m3 in matmuls and bf16 elsewhere.
enum class DType : uint8_t { kF32, kBf16, kF16, kInt8, kFp8 };
inline constexpr std::array kDTypes = {DType::kF32, DType::kBf16, DType::kF16, DType::kInt8,
                                       DType::kFp8};
absl::string_view DTypeName(DType dtype);  // "f32", "bf16", "f16", "int8", "fp8"

// The largest batch a session takes; it allocates for that when it is made, and never again.
struct SessionLimits {
  int64_t max_batch_tokens = 0;
  int64_t max_batch_sequences = 0;
};

// What every session checks before it runs: INVALID_ARGUMENT with both numbers when the batch is
// larger than `limits`, or `spec` is not one entry for each sequence.
absl::Status CheckSessionLimits(const PackedBatch& batch, const OutputSpec& spec,
                                const SessionLimits& limits);

// One worker's private execution state: scratch memory, threads, compiled primitives.
// Thread-confined: one thread at a time calls it.
class Session {
 public:
  virtual ~Session() = default;

  // Runs the encoder over `batch` and points `outputs` at the results; what spec.layers asks for is
  // written where it says. A sequence's results are the same bits whatever else is in the batch,
  // wherever it stands in it and whatever else is asked for.
  // REQUIRES: every sequence passed ValidateSequence; spec.sequences.size() == batch.batch(); the
  // layers and heads of spec.layers are the model's.
  // INVALID_ARGUMENT beyond the session's limits; INTERNAL when a kernel fails. The session stays
  // usable. UNAVAILABLE when its device is lost: this session never works again.
  virtual absl::Status Run(const PackedBatch& batch, const OutputSpec& spec, Outputs& outputs) = 0;

  // The calling thread is the one that calls Run from now on: it takes its place in the session's
  // team.
  virtual void PlaceCaller() {}

  // What the session holds for itself; it does not grow.
  virtual int64_t arena_bytes() const { return 0; }
};

// What a back end made of a model, for logs and metrics.
struct PreparedInfo {
  std::string backend;  // "cpu", "cuda", "reference"
  std::string isa;      // instruction set chosen at run time, e.g. "avx512_bf16"
  // "tiles:" and the instruction set, oneDNN\'s name for its kernel, as
  // "brg_matmul:avx512_core_amx", both joined by ", " or "cublasLt". Empty: the back end does not
  // say.
  std::string matmul_implementation{};
  DType dtype = DType::kF32;
  int64_t weight_bytes = 0;  // held by the prepared model itself
};

// What a device of its own, as a GPU, has done for a model.
struct DeviceUse {
  struct Group {
    absl::string_view name;  // of kernels, e.g. "attention"
    double seconds = 0;      // of the batches that were timed so closely, some in a hundred
  };

  int device = 0;  // as the system counts them
  std::string name;
  int64_t memory_used_bytes = 0;  // by every process
  int64_t memory_total_bytes = 0;
  double busy_seconds = 0;  // of all batches
  std::vector<Group> groups;
};

// A model's weights in the form that one back end computes with; shared by all its sessions, which
// it must outlive. Thread-safe.
class PreparedEncoder {
 public:
  virtual ~PreparedEncoder() = default;
  virtual const EncoderConfig& config() const = 0;
  virtual const PreparedInfo& info() const = 0;

  // A session that computes with a team of threads. Everything is allocated, near the team's
  // processors, and compiled before it returns. RESOURCE_EXHAUSTED when that does not fit in
  // memory.
  virtual absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits& limits,
                                                              const ThreadTeam& team) const = 0;

  // One for each device that has a part in it; none for the CPU.
  virtual std::vector<DeviceUse> device_use() const { return {}; }
};

// How a back end is best used where nobody says otherwise.
struct BackendDefaults {
  int sessions = 0;  // for one model, that keep all devices busy; 0: as many as the CPU has places
  int64_t batch_tokens = 1024;  // beyond about so many a CPU's batch is not faster, only later
  int64_t batch_sequences = 256;
};

// A way to run encoders: the plain reference, the CPU with oneDNN, a GPU. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual absl::string_view name() const = 0;
  virtual BackendDefaults defaults() const { return {}; }

  // OK when this machine has fast kernels for `dtype`; else UNIMPLEMENTED, saying what is missing.
  virtual absl::Status Supports(DType dtype) const = 0;

  // The fastest format on this machine whose answers stay within rounding of f32's.
  virtual DType preferred_dtype() const = 0;

  // Packs the weights for this back end. INVALID_ARGUMENT when config and weights disagree;
  // UNIMPLEMENTED when this machine has no fast kernel for `dtype`.
  virtual absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                                   EncoderWeights weights,
                                                                   DType dtype) const = 0;
};

}  // namespace attendant
