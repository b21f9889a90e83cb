// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's matmuls as plain loops: D [m, n] = A^T B, column-major, so that in rows D [n, m] =
// B [n, k] times A [m, k]. Its algorithms differ as real ones do: in the order of their sums.
#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/cuda_emulation/machine.h"
#include "tests/support/cuda_emulation/number_formats.h"

namespace attendant::cuda_emulation {
namespace {

enum AlgorithmId : uint64_t {
  kForward = 1,       // sums in the order of k
  kBackward = 2,      // in the reverse order: other bits
  kForwardAgain = 3,  // kForward's bits under another name
  kSplit = 4,         // in two halves, the cut depending on the rows: what split-K does
};

struct Matmul {
  cublasLtMatmulDescOpaque_t desc;
  cudaDataType operand_type, out_type;
  int64_t m, n, k;
  const void *a, *b;  // [m, k], [n, k]
  void* d;            // [n, m]
  uint64_t algorithm;
};

std::vector<float> ToFloats(cudaDataType type, const void* values, int64_t count) {
  std::vector<float> floats(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) floats[static_cast<size_t>(i)] = LoadFloat(type, values, i);
  return floats;
}

// Not under ThreadSanitizer: the choice between clones runs before its library is ready.
#ifdef ATTENDANT_TSAN
#define ATTENDANT_CLONES
#else
#define ATTENDANT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

// sums [m] += x * column [m], a fixed order whatever the compiler makes of it.
ATTENDANT_CLONES void AddScaled(float x, const float* column, int64_t m, float* sums) {
  for (int64_t i = 0; i < m; ++i) sums[i] += x * column[i];
}

float Activate(cublasLtEpilogue_t epilogue, float x) {
  if (epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) return x > 0 ? x : 0;
  if (epilogue != CUBLASLT_EPILOGUE_GELU_BIAS) return x;
  return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}

// Rows and columns that are summed together, so that what they share stays in the cache.
constexpr int64_t kRowBlock = 8;
constexpr int64_t kColumnBlock = 512;

// sums [rows, m] += b [rows, k] columns [k, m] over k of [begin, end), or backward.
void AddRange(const Matmul& p, const float* b, int64_t rows, const std::vector<float>& columns,
              int64_t begin, int64_t end, float* sums) {
  for (int64_t i = 0; i < p.m; i += kColumnBlock) {
    const int64_t width = std::min(kColumnBlock, p.m - i);
    for (int64_t step = 0; step < end - begin; ++step) {
      const int64_t k = p.algorithm == kBackward ? end - 1 - step : begin + step;
      for (int64_t row = 0; row < rows; ++row) {
        AddScaled(b[row * p.k + k], columns.data() + k * p.m + i, width, sums + row * p.m + i);
      }
    }
  }
}

void SumRows(const Matmul& p, const float* b, int64_t rows, const std::vector<float>& columns,
             std::vector<float>& sums) {
  std::fill(sums.begin(), sums.end(), 0.0f);
  if (p.algorithm != kSplit) {
    AddRange(p, b, rows, columns, 0, p.k, sums.data());
    return;
  }
  const int64_t cut = p.n < 64 ? p.k / 2 : p.k / 4;
  std::vector<float> rest(sums.size(), 0.0f);
  AddRange(p, b, rows, columns, 0, cut, sums.data());
  AddRange(p, b, rows, columns, cut, p.k, rest.data());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += rest[i];
}

// d [row] = f(scales * sums + bias)
void StoreRow(const Matmul& p, int64_t row, const float* sums) {
  for (int64_t i = 0; i < p.m; ++i) {
    float value = sums[i];
    if (p.desc.a_scale != nullptr) value = value * p.desc.a_scale[i] * p.desc.b_scale[row];
    if (p.desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
      value += LoadFloat(p.out_type, p.desc.bias, i);
    }
    StoreFloat(p.out_type, Activate(p.desc.epilogue, value), p.d, row * p.m + i);
  }
}

void Multiply(const Matmul& p) {
  std::vector<float> columns(static_cast<size_t>(p.m * p.k));  // [k, m]
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t k = 0; k < p.k; ++k) {
      columns[static_cast<size_t>(k * p.m + i)] = LoadFloat(p.operand_type, p.a, i * p.k + k);
    }
  }
  const std::vector<float> b = ToFloats(p.operand_type, p.b, p.n * p.k);
  std::vector<float> sums(static_cast<size_t>(kRowBlock * p.m));
  for (int64_t j = 0; j < p.n; j += kRowBlock) {
    const int64_t rows = std::min(kRowBlock, p.n - j);
    SumRows(p, b.data() + j * p.k, rows, columns, sums);
    for (int64_t row = 0; row < rows; ++row) StoreRow(p, j + row, sums.data() + row * p.m);
  }
}

bool IsAligned(int64_t elements, cudaDataType type) { return elements * BytesOf(type) % 16 == 0; }

// What is refused is refused on a GPU as well; what is not used here is refused, too.
bool IsSupported(const cublasLtMatmulDescOpaque_t& desc, const cublasLtMatrixLayoutOpaque_t& a,
                 const cublasLtMatrixLayoutOpaque_t& b, const cublasLtMatrixLayoutOpaque_t& d) {
  const bool fp8 = a.type == CUDA_R_8F_E4M3;
  const bool scaled = desc.a_scale_mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F &&
                      desc.b_scale_mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F &&
                      desc.a_scale != nullptr && desc.b_scale != nullptr;
  const bool unscaled = desc.a_scale == nullptr && desc.b_scale == nullptr &&
                        desc.a_scale_mode == 0 && desc.b_scale_mode == 0;
  const bool known_epilogue =
      desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
      (desc.bias != nullptr && (!desc.has_bias_type || desc.bias_type == d.type));
  return desc.trans_a == CUBLAS_OP_T && desc.trans_b == CUBLAS_OP_N && a.type == b.type &&
         (fp8 ? scaled && d.type == CUDA_R_16BF && TheMachine().options.compute_capability == 90
              : unscaled && d.type == a.type) &&
         a.rows == b.rows && a.cols == d.rows && b.cols == d.cols &&
         a.ld == static_cast<int64_t>(a.rows) && b.ld == static_cast<int64_t>(b.rows) &&
         d.ld == static_cast<int64_t>(d.rows) && IsAligned(a.ld, a.type) &&
         IsAligned(d.ld, d.type) && known_epilogue;
}

bool IsOnDevice(const Matmul& p, size_t workspace_bytes, const void* workspace) {
  const Machine& machine = TheMachine();
  const auto has = [&](const void* pointer, int64_t bytes) {
    return IsInside(machine, pointer, static_cast<size_t>(bytes), false);
  };
  const int64_t in = BytesOf(p.operand_type), out = BytesOf(p.out_type);
  return has(p.a, p.m * p.k * in) && has(p.b, p.n * p.k * in) && has(p.d, p.n * p.m * out) &&
         (p.desc.bias == nullptr || has(p.desc.bias, p.m * out)) &&
         (p.desc.a_scale == nullptr ||
          (has(p.desc.a_scale, p.m * 4) && has(p.desc.b_scale, p.n * 4))) &&
         has(workspace, static_cast<int64_t>(workspace_bytes));
}

cublasStatus_t ToCublas(cudaError_t error) {
  if (error == cudaSuccess) return CUBLAS_STATUS_SUCCESS;
  if (error == cudaErrorMemoryAllocation) return CUBLAS_STATUS_ALLOC_FAILED;
  return IsSticky(error) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_INTERNAL_ERROR;
}

}  // namespace
}  // namespace attendant::cuda_emulation

using namespace attendant::cuda_emulation;

struct cublasLtContext {
  int device;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return ToCublas(Call(ThisThread().device, [&](Machine& machine) {
    *handle = new cublasLtContext{ThisThread().device};
    ++machine.alive.cublas_handles;
    return cudaSuccess;
  }));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return ToCublas(ReleasingCall(handle->device, [&](Machine& machine) {
    delete handle;
    --machine.alive.cublas_handles;
    return cudaSuccess;
  }));
}

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, cublasComputeType_t,
                                      cudaDataType_t scale_type) {
  *desc = {};
  desc->scale_type = scale_type;
  desc->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  const auto set = [&](auto& field) {
    if (bytes != sizeof(field)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(desc->trans_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(desc->trans_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(desc->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      desc->has_bias_type = true;
      return set(desc->bias_type);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return set(desc->a_scale);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return set(desc->b_scale);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
      return set(desc->a_scale_mode);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
      return set(desc->b_scale_mode);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type,
                                        uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = {type, rows, cols, ld};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  *preference = {.workspace_bytes = 0, .reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof(uint64_t)) {
    std::memcpy(&preference->workspace_bytes, value, bytes);
  } else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == 4) {
    std::memcpy(&preference->reduction_schemes, value, bytes);
  } else if (bytes != sizeof(uint32_t)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// The best first, as it seems: for few rows that is one with other bits.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
  *returned = 0;
  const cublasStatus_t status =
      ToCublas(Call(handle->device, [](Machine&) { return cudaSuccess; }));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (!IsSupported(*desc, *a, *b, *d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  std::vector<uint64_t> ids = {kForward, kBackward};
  if (d->cols <= 64) ids = {kBackward, kForwardAgain};
  if (preference->reduction_schemes != 0) ids.insert(ids.begin(), kSplit);
  for (const uint64_t id : ids) {
    if (*returned == requested) break;
    results[(*returned)++] = {
        .algo = {{id}}, .workspaceSize = 0, .state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const cublasStatus_t status =
      ToCublas(Call(handle->device, [](Machine&) { return cudaSuccess; }));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  *result = {.algo = *algo, .workspaceSize = 0, .state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
  return IsSupported(*desc, *a, *b, *d) && algo->data[0] >= kForward && algo->data[0] <= kSplit
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a_data, cublasLtMatrixLayout_t a, const void* b_data,
                              cublasLtMatrixLayout_t b, const void* beta, const void* c_data,
                              cublasLtMatrixLayout_t, void* d_data, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (!IsSupported(*desc, *a, *b, *d) || *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0 || c_data != d_data ||
      handle->device != stream->device) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const Matmul matmul{.desc = *desc,
                      .operand_type = a->type,
                      .out_type = d->type,
                      .m = static_cast<int64_t>(d->rows),
                      .n = static_cast<int64_t>(d->cols),
                      .k = static_cast<int64_t>(a->rows),
                      .a = a_data,
                      .b = b_data,
                      .d = d_data,
                      .algorithm = algo->data[0]};
  return ToCublas(Call(stream->device, [&](Machine& machine) {
    if (!IsOnDevice(matmul, workspace_bytes, workspace)) return cudaErrorInvalidValue;
    return Enqueue(machine, stream, [matmul] { Multiply(matmul); });
  }));
}
