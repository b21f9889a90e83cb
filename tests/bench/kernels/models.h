// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/backend.h"
#include "kernels/cpu/cpu_backend.h"

namespace attendant::bench {

// The dimensions that kernels are measured at.
struct ModelShape {
  const char* name;
  int64_t hidden, ffn, heads;

  int64_t head_dim() const { return hidden / heads; }
};
inline constexpr ModelShape kMiniLm{"minilm", 384, 1536, 12};
inline constexpr ModelShape kBertBase{"bert-base", 768, 3072, 12};

// The number formats whose matmuls are fast on this machine.
inline std::vector<DType> FastDTypes() {
  std::vector<DType> dtypes;
  const auto backend = MakeCpuBackend({});
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    if (backend.ok() && (*backend)->Supports(dtype).ok()) dtypes.push_back(dtype);
  }
  return dtypes;
}

// "kernel/bert-base/bf16"
inline std::string BenchmarkName(const std::string& kernel, const ModelShape& model, DType dtype) {
  return absl::StrCat(kernel, "/", model.name, "/", std::string(DTypeName(dtype)));
}

}  // namespace attendant::bench
