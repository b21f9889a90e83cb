// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/similarity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/format.h"

namespace attendant::client {
namespace {

constexpr size_t kMaxMatrixTexts = 12;

std::string DescribeMatrix(std::span<const std::string> texts, const Tensor& cosines) {
  std::string out = "    ";
  for (size_t i = 0; i < texts.size(); ++i) absl::StrAppendFormat(&out, " %5d", i + 1);
  absl::StrAppend(&out, "\n");
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StrAppendFormat(&out, " %2d ", i + 1);
    for (float cosine : Row(cosines, i)) absl::StrAppendFormat(&out, " %5.2f", cosine);
    absl::StrAppend(&out, "  ", OneLine(texts[i], kShownTextWidth), "\n");
  }
  return out;
}

}  // namespace

Tensor CosineMatrix(const Tensor& embeddings) {
  const size_t texts = static_cast<size_t>(embeddings.shape[0]);
  std::vector<float> inverse_norms(texts);
  const auto dot = [&](size_t i, size_t j) {
    const std::span<const float> a = Row(embeddings, i);
    return std::inner_product(a.begin(), a.end(), Row(embeddings, j).begin(), 0.0f);
  };
  for (size_t i = 0; i < texts; ++i) {
    const float norm = std::sqrt(dot(i, i));
    inverse_norms[i] = norm > 0 ? 1 / norm : 0;
  }
  Tensor cosines{.shape = {embeddings.shape[0], embeddings.shape[0]},
                 .values = std::vector<float>(texts * texts)};
  for (size_t i = 0; i < texts; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      // Rounding would make some a little larger than 1.
      const float cosine = std::clamp(dot(i, j) * inverse_norms[i] * inverse_norms[j], -1.0f, 1.0f);
      cosines.values[i * texts + j] = cosines.values[j * texts + i] = cosine;
    }
  }
  return cosines;
}

std::vector<SimilarPair> MostSimilar(const Tensor& cosines, size_t count) {
  std::vector<SimilarPair> pairs;
  const size_t texts = static_cast<size_t>(cosines.shape[0]);
  for (size_t i = 0; i < texts; ++i) {
    for (size_t j = i + 1; j < texts; ++j) {
      pairs.push_back({.cosine = cosines.values[i * texts + j], .first = i, .second = j});
    }
  }
  count = std::min(count, pairs.size());
  std::partial_sort(pairs.begin(), pairs.begin() + static_cast<ptrdiff_t>(count), pairs.end(),
                    [](const SimilarPair& a, const SimilarPair& b) {
                      const bool before = Before(a.cosine, b.cosine);
                      return before || Before(b.cosine, a.cosine)
                                 ? before
                                 : std::pair(a.first, a.second) < std::pair(b.first, b.second);
                    });
  pairs.resize(count);
  return pairs;
}

std::string DescribeSimilarity(std::span<const std::string> texts, const Tensor& embeddings,
                               size_t num_pairs) {
  const Tensor cosines = CosineMatrix(embeddings);
  std::string out;
  if (texts.size() <= kMaxMatrixTexts) {
    out = absl::StrCat("Cosine similarity\n\n", DescribeMatrix(texts, cosines), "\n");
  }
  const std::vector<SimilarPair> pairs = MostSimilar(cosines, num_pairs);
  if (!pairs.empty()) absl::StrAppend(&out, "Most similar\n\n");
  for (const SimilarPair& pair : pairs) {
    absl::StrAppendFormat(&out, "  %5.2f  %s\n         %s\n", pair.cosine,
                          OneLine(texts[pair.first], kShownTextWidth),
                          OneLine(texts[pair.second], kShownTextWidth));
  }
  return out;
}

}  // namespace attendant::client
