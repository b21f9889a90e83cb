// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpLanes;

template <Function kFunction>
__device__ __forceinline__ float Apply(float x) {
  if (kFunction == Function::kGeluErf) return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  if (kFunction == Function::kGeluTanh) {
    const float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + tanhf(inner));
  }
  if (kFunction == Function::kRelu) return x < 0 ? 0 : x;  // NaN stays NaN
  return x;
}

template <Function kFunction, typename T>
__device__ __forceinline__ void LoadApplied(const T* from, float (&values)[kVector]) {
  LoadVector(from, values);
  for (int i = 0; i < kVector; ++i) values[i] = Apply<kFunction>(values[i]);
}

// One block a row. A row that is quantized is read and computed twice, the second time out of the
// cache: what a row of any width needs beside it are a few registers.
template <typename T, Function kFunction>
__global__ void __launch_bounds__(kThreads)
    ActivateKernel(T* values, uint8_t* quantized, float* scales, const BatchCounts* counts,
                   int64_t width) {
  const int64_t row = blockIdx.x;
  if (row >= counts->tokens) return;
  T* row_values = values + row * width;
  const int64_t first = int64_t{threadIdx.x} * kVector;
  constexpr int kStep = kThreads * kVector;
  float vector[kVector];
  if (quantized == nullptr) {
    for (int64_t column = first; column < width; column += kStep) {
      LoadApplied<kFunction>(row_values + column, vector);
      StoreVector(vector, row_values + column);
    }
    return;
  }
  float largest = 0;
  for (int64_t column = first; column < width; column += kStep) {
    LoadApplied<kFunction>(row_values + column, vector);
    for (int i = 0; i < kVector; ++i) largest = fmaxf(largest, fabsf(vector[i]));
  }
  auto* scratch = reinterpret_cast<float*>(SharedMemory());
  const float scale = QuantizationScale(ReduceRow<kWarps>(largest, Max(), scratch));
  for (int64_t column = first; column < width; column += kStep) {
    LoadApplied<kFunction>(row_values + column, vector);
    StoreQuantized(vector, 1.0f / scale, quantized + row * width + column);
  }
  if (threadIdx.x == 0) scales[row] = scale;
}

template <typename T>
void (*KernelFor(Function function))(T*, uint8_t*, float*, const BatchCounts*, int64_t) {
  switch (function) {
    case Function::kGeluErf:
      return &ActivateKernel<T, Function::kGeluErf>;
    case Function::kGeluTanh:
      return &ActivateKernel<T, Function::kGeluTanh>;
    case Function::kRelu:
      return &ActivateKernel<T, Function::kRelu>;
    case Function::kIdentity:
      return &ActivateKernel<T, Function::kIdentity>;
  }
  return nullptr;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ToFloatKernel(const T* values, float* out, int64_t vectors) {
  const int64_t vector = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (vector >= vectors) return;
  float eight[kVector];
  LoadVector(values + vector * kVector, eight);
  StoreVector(eight, out + vector * kVector);
}

}  // namespace

cudaError_t LaunchActivate(Format format, const ActivateArgs& args, const BatchCounts* counts,
                           int64_t max_tokens, int64_t width, cudaStream_t stream) {
  if (width % kVector != 0) return cudaErrorInvalidValue;
  return WithStateType(format, [&](auto type) {
    using T = decltype(type);
    const auto kernel = KernelFor<T>(args.function);
    if (kernel == nullptr) return cudaErrorInvalidValue;
    return Launch({max_tokens, kThreads, kWarps * sizeof(float)}, stream, kernel,
                  static_cast<T*>(args.values), args.quantized, args.scales, counts, width);
  });
}

cudaError_t LaunchToFloat(Format format, const void* values, float* out, int64_t rows,
                          int64_t width, cudaStream_t stream) {
  if (width % kVector != 0) return cudaErrorInvalidValue;
  const int64_t vectors = rows * width / kVector;
  return WithStateType(format, [&](auto type) {
    using T = decltype(type);
    return Launch({CeilDivide(vectors, kThreads), kThreads}, stream, &ToFloatKernel<T>,
                  static_cast<const T*>(values), out, vectors);
  });
}

}  // namespace attendant::cuda
