// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/tuner.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cuda/engine/batch_layout.h"
#include "kernels/cuda/engine/matmul_probe.h"

namespace attendant::cuda {
namespace {

// The base is asked for at one size, so that sessions of all limits have the same.
constexpr int64_t kBaseRows = 2048;
constexpr int kCandidates = 8;
bool Same(const cublasLtMatmulAlgo_t& a, const cublasLtMatmulAlgo_t& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// The first that gives a row the same bits in every class, and the reference from it.
Status ChooseBase(MatmulProbe& probe, int classes, cublasLtMatmulAlgo_t& base) {
  std::vector<cublasLtMatmulAlgo_t> candidates;
  ATTENDANT_CUDA_TRY(
      ListAlgorithms(probe.context(), probe.shape(), kBaseRows, kCandidates, candidates));
  for (const cublasLtMatmulAlgo_t& candidate : candidates) {
    bool suits = false;
    ATTENDANT_CUDA_TRY(Accepts(probe.context(), probe.shape(), probe.most_of_class(classes - 1),
                               candidate, suits));
    if (!suits) continue;
    ATTENDANT_CUDA_TRY(probe.SetReference(candidate));
    for (int row_class = 0; row_class < classes && suits; ++row_class) {
      ATTENDANT_CUDA_TRY(probe.SuitsClass(candidate, row_class, suits));
    }
    base = candidate;
    if (suits) return {};
  }
  return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                       "none of cuBLASLt's algorithms keeps a row's bits for every batch");
}

Status ChooseFastest(MatmulProbe& probe, int row_class, const cublasLtMatmulAlgo_t& base,
                     cublasLtMatmulAlgo_t& fastest) {
  const int64_t rows = probe.most_of_class(row_class);
  std::vector<cublasLtMatmulAlgo_t> candidates;
  ATTENDANT_CUDA_TRY(ListAlgorithms(probe.context(), probe.shape(), rows, kCandidates, candidates));
  fastest = base;
  float least = std::numeric_limits<float>::infinity();
  for (const cublasLtMatmulAlgo_t& candidate : candidates) {
    bool suits = false;
    if (Same(candidate, base)) continue;
    ATTENDANT_CUDA_TRY(probe.SuitsClass(candidate, row_class, suits));
    if (!suits) continue;
    float milliseconds = 0;
    if (Same(fastest, base)) ATTENDANT_CUDA_TRY(probe.Time(base, rows, least));
    ATTENDANT_CUDA_TRY(probe.Time(candidate, rows, milliseconds));
    if (milliseconds < least) {
      least = milliseconds;
      fastest = candidate;
    }
  }
  return {};
}

// An algorithm was tried with a class's fewest and most rows: the buckets between must accept it.
Status AcceptsClass(const MatmulContext& context, const MatmulShape& shape, int row_class,
                    int64_t max_rows, const cublasLtMatmulAlgo_t& algorithm, bool& accepts) {
  const int64_t most = std::min(LargestOfClass(row_class), max_rows);
  accepts = true;
  for (int64_t rows = SmallestOfClass(row_class); accepts && rows <= most;
       rows = BucketTokens(rows + 1)) {
    ATTENDANT_CUDA_TRY(Accepts(context, shape, rows, algorithm, accepts));
  }
  return {};
}

bool HasAll(const AlgorithmTable& table, MatmulKind kind, int classes) {
  for (int row_class = 0; row_class < classes; ++row_class) {
    if (!table.fastest(kind, row_class).has_value()) return false;
  }
  return true;
}

Status TuneKind(MatmulProbe& probe, MatmulKind kind, int classes, AlgorithmTable& table) {
  ATTENDANT_CUDA_TRY(probe.SelectKind(kind));
  cublasLtMatmulAlgo_t base;
  if (const auto known = table.base(kind); known.has_value()) {
    base = *known;
    ATTENDANT_CUDA_TRY(probe.SetReference(base));
  } else {
    ATTENDANT_CUDA_TRY(ChooseBase(probe, classes, base));
    table.set_base(kind, base);
  }
  for (int row_class = 0; row_class < classes; ++row_class) {
    if (table.fastest(kind, row_class).has_value()) continue;
    cublasLtMatmulAlgo_t fastest;
    ATTENDANT_CUDA_TRY(ChooseFastest(probe, row_class, base, fastest));
    table.set_fastest(kind, row_class, fastest);
  }
  return {};
}

}  // namespace

Status ChooseAlgorithms(Model& model, const MatmulContext& context, const DeviceBuffers& buffers,
                        int64_t rows, cudaStream_t stream, Algorithms& algorithms) {
  const int classes = RowClass(rows) + 1;
  AlgorithmTable& table = model.algorithms();
  const std::lock_guard lock(table.tuning());
  algorithms.resize(static_cast<size_t>(classes));
  for (int i = 0; i < kNumMatmulKinds; ++i) {
    const auto kind = static_cast<MatmulKind>(i);
    if (!model.has(kind)) continue;
    if (!HasAll(table, kind, classes)) {
      MatmulProbe probe(model, context, buffers, rows, stream);
      ATTENDANT_CUDA_TRY(TuneKind(probe, kind, classes, table));
    }
    for (int row_class = 0; row_class < classes; ++row_class) {
      const cublasLtMatmulAlgo_t fastest = *table.fastest(kind, row_class);
      bool usable = false;
      ATTENDANT_CUDA_TRY(
          AcceptsClass(context, model.shape(kind), row_class, rows, fastest, usable));
      algorithms[static_cast<size_t>(row_class)][static_cast<size_t>(i)] =
          usable ? fastest : *table.base(kind);
    }
  }
  return {};
}

}  // namespace attendant::cuda
