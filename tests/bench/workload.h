// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/encoder_config.h"
#include "kernels/core/outputs.h"
#include "kernels/core/packed_batch.h"

namespace attendant::bench {

// Lengths of real traffic, from mixed_lengths.inc.
std::vector<int64_t> MixedLens();

// Sequences of random ids with these lengths, cut into batches in arrival order, as the server
// does.
std::vector<PackedBatch> MakeBatches(const EncoderConfig& config, const std::vector<int64_t>& lens,
                                     int64_t max_tokens);

// FLOP to encode one sequence of each length: the linear layers, both matmuls of attention for the
// keys that a query attends to, and the terms of ScoreBias::kDisentangled. A multiply-add counts as
// two. Where one token is pooled, the last layer counts for that one behind its keys and values,
// and its attention not at all.
double Flops(const EncoderConfig& config, const std::vector<int64_t>& lens, Pooling pooling);

}  // namespace attendant::bench
