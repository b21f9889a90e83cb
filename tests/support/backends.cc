// SPDX-License-Identifier: Apache-2.0
#include "tests/support/backends.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "kernels/backends/cuda_backend.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"

namespace attendant {
namespace {

template <typename T>
T ValueOrDie(absl::StatusOr<T> value, const std::string& what) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

std::vector<float> CopyRows(TensorView<const float, 2> rows, int64_t begin, int64_t end) {
  return {rows.row(begin), rows.row(end)};
}

PackedBatch Pack(const std::vector<TestSequence>& sequences) {
  PackedBatch batch;
  for (const TestSequence& sequence : sequences) {
    batch.Append(sequence.token_ids, sequence.positions, sequence.segment_ids, sequence.keys);
  }
  return batch;
}

Outputs RunOrDie(Session& session, const PackedBatch& batch,
                 const std::vector<SequenceOutputs>& wanted) {
  Outputs outputs;
  const absl::Status status = session.Run(batch, {wanted}, outputs);
  if (!status.ok()) {
    std::fprintf(stderr, "Run: %s\n", status.ToString().c_str());
    std::abort();
  }
  return outputs;
}

void AddCuda(const char* name, const std::string& library, std::vector<NamedBackend>& available) {
  auto backend = MakeCudaBackend({.library = library, .devices = {}});
  if (backend.ok()) {
    available.push_back({name, *std::move(backend)});
  } else {
    std::printf("skipping %s: %s\n", name, backend.status().ToString().c_str());
  }
}

}  // namespace

std::vector<NamedBackend> AvailableBackends() {
  std::vector<NamedBackend> available;
  available.push_back({"reference", MakeReferenceBackend()});
  for (const cpu::CpuIsa isa : cpu::kCpuIsaLevels) {
    const std::string name = absl::StrCat("cpu/", cpu::CpuIsaName(isa));
    auto backend = MakeCpuBackend({.isa = isa});
    if (backend.ok()) {
      available.push_back({name, *std::move(backend)});
    } else {
      std::printf("skipping %s: %s\n", name.c_str(), backend.status().ToString().c_str());
    }
  }
  AddCuda("cuda", BUILT_CUDA_LIBRARY, available);
  AddCuda("cuda/emulated", EMULATED_CUDA_LIBRARY, available);
  return available;
}

std::unique_ptr<PreparedEncoder> PrepareCheckpoint(const Backend& backend,
                                                   const std::string& directory, DType dtype) {
  Checkpoint checkpoint = ValueOrDie(LoadCheckpoint(directory), directory);
  auto encoder = backend.Prepare(checkpoint.config, std::move(checkpoint.weights), dtype);
  if (backend.name() == "cuda" && absl::IsUnimplemented(encoder.status())) return nullptr;
  return ValueOrDie(std::move(encoder), directory);
}

std::vector<TestSequence> RandomSequences(const EncoderConfig& config,
                                          const std::vector<int64_t>& lens, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TestSequence> sequences;
  for (int64_t len : lens) {
    TestSequence sequence;
    for (int64_t i = 0; i < len; ++i) {
      sequence.token_ids.push_back(
          static_cast<int32_t>(random() % static_cast<uint32_t>(config.vocab)));
      sequence.positions.push_back(static_cast<int32_t>(i));
      sequence.segment_ids.push_back(i > len / 2 && config.segment_types > 1 ? 1 : 0);
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

std::vector<TestOutput> RunBatch(Session& session, const std::vector<TestSequence>& sequences) {
  const PackedBatch batch = Pack(sequences);
  const std::vector<SequenceOutputs> wanted(
      sequences.size(), {.last_hidden_state = true, .pooling = Pooling::kMean, .normalize = true});
  const Outputs outputs = RunOrDie(session, batch, wanted);
  std::vector<TestOutput> results;
  for (int64_t i = 0; i < batch.batch(); ++i) {
    results.push_back({.last_hidden_state = CopyRows(outputs.last_hidden_state, batch.seq_start(i),
                                                     batch.seq_start(i + 1)),
                       .pooled = CopyRows(outputs.pooled, i, i + 1)});
  }
  return results;
}

std::vector<std::vector<float>> PoolBatch(Session& session,
                                          const std::vector<TestSequence>& sequences,
                                          const std::vector<SequenceOutputs>& wanted) {
  const PackedBatch batch = Pack(sequences);
  const Outputs outputs = RunOrDie(session, batch, wanted);
  std::vector<std::vector<float>> pooled(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    if (wanted[i].pooling != Pooling::kNone) pooled[i] = CopyRows(outputs.pooled, row, row + 1);
  }
  return pooled;
}

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<float>::infinity();
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

double Cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    dot += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return dot / std::sqrt(aa * bb);
}

}  // namespace attendant
