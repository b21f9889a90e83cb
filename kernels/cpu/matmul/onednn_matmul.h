// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace attendant::cpu {

// Holds oneDNN down to `isa`, for the whole process and for good: the limit is a global of oneDNN's
// own, and this is the only place that sets it. Call it before oneDNN computes. kAuto does nothing,
// the same level again neither. UNAVAILABLE when the machine lacks the level; FAILED_PRECONDITION
// when oneDNN has computed already or has another limit. Thread-safe.
absl::Status LimitOneDnn(CpuIsa isa);

// Matmuls by oneDNN's matmul primitive, compiled when it is created.
class OneDnnMatmul final : public Matmul {
 public:
  // INTERNAL when oneDNN fails; UNIMPLEMENTED where it has only slow kernels for this machine.
  // REQUIRES: the output is kSums, in int8 without a bias, or kBf16 in bf16.
  static absl::StatusOr<std::unique_ptr<Matmul>> Create(const Options& options);

  // oneDNN's name for what it chose, e.g. "brg_matmul:avx512_core_bf16".
  std::string implementation() const override { return variants_.back().desc.impl_info_str(); }
  void Pack(TensorView<const float, 2> weight, void* storage) const override;
  void Pack(TensorView<const int8_t, 2> weight, void* storage) const override;
  int64_t packed_bytes() const override { return packed_bytes_; }
  int64_t gate_columns() const override { return options().n / 2; }
  int64_t CountSlices(int64_t limit) const override;
  absl::StatusOr<std::unique_ptr<Matmul>> CreateSlice(int64_t slices,
                                                      int64_t max_rows) const override;
  std::unique_ptr<MatmulExecutor> NewExecutor(void* scratchpad) const override;
  size_t scratchpad_bytes() const override { return scratchpad_bytes_; }

 private:
  class Executor;

  struct Variant {  // for one m, a multiple of kRowGranularity
    dnnl::matmul::primitive_desc desc;
    dnnl::matmul primitive;
  };

  OneDnnMatmul(const dnnl::engine& engine, const Options& options, int64_t depth)
      : Matmul(options), engine_(engine), depth_(depth) {}
  static absl::StatusOr<std::unique_ptr<Matmul>> Compile(const dnnl::engine& engine,
                                                         const Options& options, int64_t depth,
                                                         const dnnl::memory::desc& weight);
  void PackValues(const void* values, dnnl::memory::data_type type, void* storage) const;
  dnnl::memory::desc weight_desc() const { return variants_.front().desc.weights_desc(); }

  dnnl::engine engine_;
  int64_t depth_;                  // k as oneDNN gets it, with zeros from options().k on
  std::vector<Variant> variants_;  // ascending m
  size_t scratchpad_bytes_ = 0;
  int64_t padded_rows_at_ = 0;  // in the scratchpad, if x is padded
  int64_t packed_bytes_ = 0;
  int64_t call_rows_ = 0;  // the most that one call of oneDNN gets
};

}  // namespace attendant::cpu
