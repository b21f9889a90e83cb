// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/row_vectors.cuh"

namespace attendant::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpLanes;

template <Activation kActivation>
__device__ __forceinline__ float Apply(float x) {
  if (kActivation == Activation::kGeluErf)
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  if (kActivation == Activation::kGeluTanh) {
    const float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + tanhf(inner));
  }
  if (kActivation == Activation::kRelu) return x < 0 ? 0 : x;  // NaN stays NaN
  if (kActivation == Activation::kSilu) return x / (1.0f + expf(-x));
  return x;
}

// Of a gated network, what is multiplied lies `width` behind.
template <Activation kActivation, bool kGated, typename T>
__device__ __forceinline__ void LoadApplied(const T* from, int64_t width,
                                            float (&values)[kVector]) {
  LoadVector(from, values);
  for (int i = 0; i < kVector; ++i) values[i] = Apply<kActivation>(values[i]);
  if (!kGated) return;
  float up[kVector];
  LoadVector(from + width, up);
  for (int i = 0; i < kVector; ++i) values[i] *= up[i];
}

// One block a row. A row that is quantized is read and computed twice, the second time out of the
// cache: what a row of any width needs beside it are a few registers.
template <typename T, Activation kActivation, bool kGated>
__global__ void __launch_bounds__(kThreads)
    ActivateKernel(const T* values, T* out, uint8_t* quantized, float* scales,
                   const BatchCounts* counts, int64_t width) {
  const int64_t row = blockIdx.x;
  if (row >= counts->tokens) return;
  const T* row_values = values + row * (kGated ? 2 * width : width);
  const int64_t first = int64_t{threadIdx.x} * kVector;
  constexpr int kStep = kThreads * kVector;
  float vector[kVector];
  if (quantized == nullptr) {
    for (int64_t column = first; column < width; column += kStep) {
      LoadApplied<kActivation, kGated>(row_values + column, width, vector);
      StoreVector(vector, out + row * width + column);
    }
    return;
  }
  float largest = 0;
  for (int64_t column = first; column < width; column += kStep) {
    LoadApplied<kActivation, kGated>(row_values + column, width, vector);
    for (int i = 0; i < kVector; ++i) largest = fmaxf(largest, fabsf(vector[i]));
  }
  auto* scratch = reinterpret_cast<float*>(SharedMemory());
  const float scale = QuantizationScale(ReduceRow<kWarps>(largest, Max(), scratch));
  for (int64_t column = first; column < width; column += kStep) {
    LoadApplied<kActivation, kGated>(row_values + column, width, vector);
    StoreQuantized(vector, 1.0f / scale, quantized + row * width + column);
  }
  if (threadIdx.x == 0) scales[row] = scale;
}

template <typename T>
using Kernel = void (*)(const T*, T*, uint8_t*, float*, const BatchCounts*, int64_t);

template <typename T, bool kGated>
Kernel<T> KernelFor(Activation activation) {
  switch (activation) {
    case Activation::kGeluErf:
      return &ActivateKernel<T, Activation::kGeluErf, kGated>;
    case Activation::kGeluTanh:
      return &ActivateKernel<T, Activation::kGeluTanh, kGated>;
    case Activation::kRelu:
      return &ActivateKernel<T, Activation::kRelu, kGated>;
    case Activation::kSilu:
      return &ActivateKernel<T, Activation::kSilu, kGated>;
    case Activation::kIdentity:
      return &ActivateKernel<T, Activation::kIdentity, kGated>;
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

cudaError_t LaunchActivate(DType dtype, const ActivateArgs& args, const BatchCounts* counts,
                           int64_t max_tokens, int64_t width, cudaStream_t stream) {
  if (width % kVector != 0) return cudaErrorInvalidValue;
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    const auto kernel =
        args.gated ? KernelFor<T, true>(args.activation) : KernelFor<T, false>(args.activation);
    if (kernel == nullptr) return cudaErrorInvalidValue;
    return Launch({max_tokens, kThreads, kWarps * sizeof(float)}, stream, kernel,
                  static_cast<const T*>(args.values),
                  static_cast<T*>(args.gated ? args.out : args.values), args.quantized, args.scales,
                  counts, width);
  });
}

cudaError_t LaunchToFloat(DType dtype, const void* values, float* out, int64_t rows, int64_t width,
                          cudaStream_t stream) {
  if (width % kVector != 0) return cudaErrorInvalidValue;
  const int64_t vectors = rows * width / kVector;
  return WithStateType(dtype, [&](auto type) {
    using T = decltype(type);
    return Launch({CeilDivide(vectors, kThreads), kThreads}, stream, &ToFloatKernel<T>,
                  static_cast<const T*>(values), out, vectors);
  });
}

}  // namespace attendant::cuda
