// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/client.h"

namespace attendant::client {

struct SimilarPair {
  float cosine = 0;
  size_t first = 0;
  size_t second = 0;  // > first
};

// The cosines of all pairs of rows: embeddings [texts, dims] -> [texts, texts]. A zero row has
// cosine 0.
Tensor CosineMatrix(const Tensor& embeddings);

// The `count` most similar pairs of different rows, best first.
std::vector<SimilarPair> MostSimilar(const Tensor& cosines, size_t count);

// The matrix, where it is small enough to read, and the most similar pairs.
std::string DescribeSimilarity(std::span<const std::string> texts, const Tensor& embeddings,
                               size_t num_pairs);

}  // namespace attendant::client
