// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"

namespace attendant::cpu {

// The smoothing factors of a layer, as in SmoothQuant (Xiao et al. 2023): a matmul's input is
// multiplied by them, channel by channel, before it becomes 8 bits, and the weights are divided by
// them. Positive and finite.
struct LayerSmoothing {
  std::vector<float> qkv;     // [hidden]
  std::vector<float> ffn_up;  // [hidden]
};

// A LayerNorm's output has a few channels several times as large as the rest; they would take the
// 8 bits for themselves. Half of the imbalance is moved into the weights, as SmoothQuant does, but
// without calibration data: 16 tokens of the vocabulary run through the layers in f32, where the
// mean over all of them stands for attention. Cosine to f32 of the embeddings of 38 odd texts, mean
// and smallest, without factors and with them: all-MiniLM-L6-v2 .9979 -> .9990 and .992 -> .997;
// all-mpnet-base-v2 .9979 -> .9982 and .987 -> .994. Sizes that were measured on those texts give
// .9990 and .996, .9987 and .994. A mean and a variance for each channel, predicted as if channels
// were independent, gave MiniLM the same, but mpnet .9968 and .991, worse than nothing.
// REQUIRES: ValidateWeights(config, weights) is OK; input is kTokens. Reads every weight once.
std::vector<LayerSmoothing> PredictSmoothingFactors(const EncoderConfig& config,
                                                    const EncoderWeights& weights);

// Of each set of layers that share packed weights, from those of each layer: their geometric mean.
// 1 less the cosine to f32 of the worst of nine sequences, with two ALBERT base of random weights
// whose norms are uneven as trained ones are: 3.6e-4 and 5.8e-3. With factors of each layer's own,
// and weights that are packed twelve times therefore (77 MiB more), 8.6e-4 and 7.8e-3; with a root
// mean square 7.0e-4 and 1.1e-2; without factors 1.3e-3 and 6.0e-3.
std::vector<LayerSmoothing> SharedFactors(const std::vector<LayerSmoothing>& of_layers,
                                          const std::vector<size_t>& set_of_layer);

}  // namespace attendant::cpu
