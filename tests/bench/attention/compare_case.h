// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/modules/module.h"

namespace attendant::bench {

// The input of every kind: sequences of random values that attend to themselves.
struct CompareShape {
  DType dtype = DType::kF32;
  int64_t batch = 1;
  int64_t len = 0;
  int64_t heads = 8;
  int64_t head_dim = 64;
  int64_t window = 128;     // of local attention, to either side
  int64_t projected = 256;  // keys of Linformer; as many as the sequence has where those are fewer
};

// One kind in one length, with all operands and parameters in memory.
class CompareCase {
 public:
  // INVALID_ARGUMENT or UNIMPLEMENTED where the kind cannot be called so.
  static absl::StatusOr<std::unique_ptr<CompareCase>> Create(attention::Kind kind,
                                                             const CompareShape& shape);

  const attention::Call& call() const { return call_; }
  // Where results go; `weights` may be null where the call wants none.
  attention::Outputs OutputsTo(float* weights);

 private:
  explicit CompareCase(const CompareShape& shape) : shape_(shape) {}

  void MakeOperands();
  void SetParameters();
  absl::Status MakeMultiHead();
  void AddParameter(const char* name, int64_t rows, int64_t columns);
  const float* Random(int64_t count, float deviation);

  CompareShape shape_;
  std::deque<std::vector<float>> values_;
  std::vector<std::byte> query_, key_, value_, out_;
  std::vector<attention::Parameter> parameters_;
  std::unique_ptr<const attention::Module> module_;
  attention::Call call_;
};

}  // namespace attendant::bench
