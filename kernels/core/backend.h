// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/dtype.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/session.h"
#include "kernels/core/threads/thread_team.h"

namespace attendant {

namespace cpu {
struct IsaLevel;
}

// Facts about a prepared model. The strings are for logs and metrics: no code parses them.
struct PreparedInfo {
  std::string backend;  // "cpu", "cuda", "reference"
  std::string isa;      // instruction set chosen at run time, e.g. "avx512_bf16"
  // "tiles:" and the instruction set, oneDNN's name for its kernel, as
  // "brg_matmul:avx512_core_amx", both joined by ", " or "cublasLt". Empty: the back end does not
  // say.
  std::string matmul_implementation{};
  DType dtype = DType::kF32;
  int64_t weight_bytes = 0;  // held by the prepared model itself
};

// The work of a device of its own, such as a GPU, for a model.
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
  // The CPU's instructions and matmuls that compute the encoder; null: the CPU back end does not.
  virtual const cpu::IsaLevel* cpu_level() const { return nullptr; }

  // A session that computes with a team of threads. Everything is allocated, near the team's
  // processors, and compiled before it returns. RESOURCE_EXHAUSTED when that does not fit in
  // memory.
  virtual absl::StatusOr<std::unique_ptr<Session>> NewSession(const SessionLimits& limits,
                                                              const ThreadTeam& team) const = 0;

  // The use of each device that holds a part of the encoder; empty for the CPU.
  virtual std::vector<DeviceUse> device_use() const { return {}; }
};

// The best use of a back end where flags do not say otherwise.
struct BackendDefaults {
  int sessions = 0;  // for one model, that keep all devices busy; 0: as many as the CPU has places
  int64_t batch_tokens = 1024;  // beyond about so many a CPU's batch is not faster, only later
  int64_t batch_sequences = 256;
};

// A way to run encoders: the plain reference, the CPU, a GPU. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual absl::string_view name() const = 0;
  virtual BackendDefaults defaults() const { return {}; }

  // OK when this machine has fast kernels for `dtype`; else UNIMPLEMENTED, naming the missing
  // instructions.
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
