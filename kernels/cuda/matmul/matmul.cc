// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/matmul/matmul.h"

namespace attendant::cuda {
namespace {

cudaDataType OperandType(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kFp8:
      return CUDA_R_8F_E4M3;
    case DType::kF32:
      break;
  }
  return CUDA_R_32F;
}

cublasLtEpilogue_t EpilogueOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBiasGeluTanh:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kBias:
      break;
  }
  return CUBLASLT_EPILOGUE_BIAS;
}

// cuBLASLt thinks in columns: its D [outputs, rows] = A^T B with A [inputs, outputs], the weight,
// and B [inputs, rows], which are our row-major matrices as they lie in memory. That is also the
// one arrangement in which it takes fp8. Descriptors are plain memory: making them costs nothing
// that shows.
struct Descriptors {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t weight, x, out;
};

template <typename T>
Status Set(cublasLtMatmulDescOpaque_t& operation, cublasLtMatmulDescAttributes_t attribute,
           const T& value) {
  return Check(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof(value)),
               "describing a matmul");
}

Status SetScales(const MatmulOperands& args, cublasLtMatmulDescOpaque_t& operation) {
  const int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  ATTENDANT_CUDA_TRY(Set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode));
  ATTENDANT_CUDA_TRY(Set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode));
  ATTENDANT_CUDA_TRY(Set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, args.weight_scales));
  return Set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, args.x_scales);
}

Status InitLayout(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType type, int64_t columns,
                  int64_t rows) {
  return Check(cublasLtMatrixLayoutInit(&layout, type, static_cast<uint64_t>(columns),
                                        static_cast<uint64_t>(rows), columns),
               "describing a matrix");
}

Status Describe(DType dtype, const MatmulShape& shape, const MatmulOperands& args, int64_t rows,
                Descriptors& all) {
  const cudaDataType operand = OperandType(dtype);
  const cudaDataType out = OperandType(StateDType(dtype));
  ATTENDANT_CUDA_TRY(Check(cublasLtMatmulDescInit(&all.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                           "describing a matmul"));
  ATTENDANT_CUDA_TRY(Set(all.operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  ATTENDANT_CUDA_TRY(Set(all.operation, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N));
  ATTENDANT_CUDA_TRY(Set(all.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(shape.epilogue)));
  ATTENDANT_CUDA_TRY(Set(all.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias));
  ATTENDANT_CUDA_TRY(Set(all.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, out));
  // fp8's fast accumulation stays off: sums would have 14 bits instead of f32's.
  if (dtype == DType::kFp8) ATTENDANT_CUDA_TRY(SetScales(args, all.operation));
  ATTENDANT_CUDA_TRY(InitLayout(all.weight, operand, shape.inputs, shape.outputs));
  ATTENDANT_CUDA_TRY(InitLayout(all.x, operand, shape.inputs, rows));
  return InitLayout(all.out, out, shape.outputs, rows);
}

// Arguments in place of a run's where only the kind of matmul matters: the heuristics look
// at alignment at most.
MatmulOperands AnyArgs(const MatmulContext& context) {
  const auto* memory = static_cast<const float*>(context.workspace);
  return {.x = memory,
          .x_scales = memory,
          .weight = memory,
          .weight_scales = memory,
          .bias = memory,
          .out = context.workspace};
}

template <typename T>
Status Prefer(cublasLtMatmulPreferenceOpaque_t& preference,
              cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  return Check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
               "describing the workspace");
}

Status DescribePreference(cublasLtMatmulPreferenceOpaque_t& preference) {
  ATTENDANT_CUDA_TRY(Check(cublasLtMatmulPreferenceInit(&preference), "describing the workspace"));
  ATTENDANT_CUDA_TRY(Prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                            static_cast<uint64_t>(kWorkspaceBytes)));
  // Split-K would let a row's bits depend on how many rows there are.
  ATTENDANT_CUDA_TRY(Prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                            static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE)));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    ATTENDANT_CUDA_TRY(Prefer(preference, attribute, uint32_t{16}));
  }
  return {};
}

}  // namespace

Status ListAlgorithms(const MatmulContext& context, const MatmulShape& shape, int64_t rows,
                      int limit, std::vector<cublasLtMatmulAlgo_t>& algorithms) {
  Descriptors all;
  ATTENDANT_CUDA_TRY(Describe(context.dtype, shape, AnyArgs(context), rows, all));
  cublasLtMatmulPreferenceOpaque_t preference;
  ATTENDANT_CUDA_TRY(DescribePreference(preference));

  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(limit));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(context.handle, &all.operation, &all.weight, &all.x, &all.out,
                                     &all.out, &preference, limit, results.data(), &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
    ATTENDANT_CUDA_TRY(Check(status, "asking cuBLASLt for algorithms"));
  }
  algorithms.clear();
  for (int i = 0; i < found; ++i) {
    const auto& result = results[static_cast<size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  if (!algorithms.empty()) return {};
  return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                       "cuBLASLt has no matmul [%lld, %lld] x [%lld, %lld]^T of this format here",
                       static_cast<long long>(rows), static_cast<long long>(shape.inputs),
                       static_cast<long long>(shape.outputs), static_cast<long long>(shape.inputs));
}

Status Accepts(const MatmulContext& context, const MatmulShape& shape, int64_t rows,
               const cublasLtMatmulAlgo_t& algorithm, bool& accepts) {
  accepts = false;
  Descriptors all;
  ATTENDANT_CUDA_TRY(Describe(context.dtype, shape, AnyArgs(context), rows, all));
  cublasLtMatmulHeuristicResult_t result;
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(
      context.handle, &all.operation, &all.weight, &all.x, &all.out, &all.out, &algorithm, &result);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  ATTENDANT_CUDA_TRY(Check(status, "checking an algorithm"));
  accepts = result.workspaceSize <= static_cast<size_t>(kWorkspaceBytes);
  return {};
}

Status Multiply(const MatmulContext& context, const MatmulShape& shape, const MatmulOperands& args,
                int64_t rows, const cublasLtMatmulAlgo_t& algorithm, cudaStream_t stream) {
  Descriptors all;
  ATTENDANT_CUDA_TRY(Describe(context.dtype, shape, args, rows, all));
  const float one = 1, zero = 0;
  return Check(
      cublasLtMatmul(context.handle, &all.operation, &one, args.weight, &all.weight, args.x, &all.x,
                     &zero, args.out, &all.out, args.out, &all.out, &algorithm, context.workspace,
                     static_cast<size_t>(kWorkspaceBytes), stream),
      "a matmul");
}

}  // namespace attendant::cuda
