// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/core/backend.h"

namespace attendant {

// A back end as this machine can run it, e.g. "cpu/avx512".
struct NamedBackend {
  std::string name;
  std::unique_ptr<Backend> backend;
};

// Every back end and instruction set that this machine has; says on standard output what it lacks.
// "cuda/emulated" is the CUDA back end with its device code, on the CPU: thousands of times slower.
std::vector<NamedBackend> AvailableBackends();

// The prepared encoder of a checkpoint folder; null where CUDA does not compute one of its
// switches. Ends the test run when it cannot be had.
std::unique_ptr<PreparedEncoder> PrepareCheckpoint(const Backend& backend,
                                                   const std::string& directory,
                                                   DType dtype = DType::kF32);

struct TestSequence {
  std::vector<int32_t> token_ids, positions, segment_ids;  // [len] each
  int64_t keys = 0;                                        // as PackedBatch::Append has it
};

// Sequences with random tokens, positions counted from 0; the same seed, the same values.
std::vector<TestSequence> RandomSequences(const EncoderConfig& config,
                                          const std::vector<int64_t>& lens, uint32_t seed);

struct TestOutput {
  std::vector<float> last_hidden_state;  // [len, hidden]
  std::vector<float> pooled;             // [hidden]
};

// Runs `sequences` as one batch, everything asked for with mean pooling and normalization.
std::vector<TestOutput> RunBatch(Session& session, const std::vector<TestSequence>& sequences);

// Runs `sequences` as one batch: pooled [hidden] of each; empty where its pooling is kNone.
std::vector<std::vector<float>> PoolBatch(Session& session,
                                          const std::vector<TestSequence>& sequences,
                                          const std::vector<SequenceOutputs>& wanted);

// Infinite where the sizes differ or a value is not finite.
float LargestDifference(const std::vector<float>& a, const std::vector<float>& b);
// Of the angle between vectors of one size.
double Cosine(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace attendant
