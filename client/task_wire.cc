// SPDX-License-Identifier: Apache-2.0
#include "client/task_wire.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/wire.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

absl::Status Contradiction(absl::string_view output) {
  return absl::InternalError(absl::StrCat("the answer's ", output, " contradicts itself"));
}

// Elements [begin, begin + count) of a field; none where the field is empty.
template <typename T, typename Field>
std::vector<T> Part(const Field& field, int64_t begin, int64_t count) {
  if (field.empty()) return {};
  return std::vector<T>(field.begin() + begin, field.begin() + begin + count);
}

// Rows [begin, begin + rows) of a tensor [n, columns].
Tensor Rows(const Tensor& tensor, int64_t begin, int64_t rows) {
  const int64_t columns = tensor.shape[1];
  const auto first = tensor.values.begin() + begin * columns;
  return {.shape = {rows, columns}, .values = std::vector<float>(first, first + rows * columns)};
}

absl::Status CheckStrings(absl::string_view output, int strings, int ids) {
  return strings == 0 || strings == ids ? absl::OkStatus() : Contradiction(output);
}

absl::Status ReadSparse(const v1::EncodeResponse& response, EncodeResult& result) {
  const v1::SparseVectors& sparse = response.sparse();
  ATTENDANT_ASSIGN_OR_RETURN(const Tensor weights, FromProto(sparse.weights()));
  const int64_t count = sparse.ids_size();
  if (weights.shape != std::vector<int64_t>{count}) return Contradiction("sparse");
  ATTENDANT_RETURN_IF_ERROR(CheckStrings("sparse", sparse.token_strings_size(), sparse.ids_size()));
  int64_t next = 0;
  for (const v1::SequenceInfo& info : response.sequences()) {
    const int64_t size = info.sparse_weights();
    if (size < 0 || size > count - next) return Contradiction("sparse");
    result.sparse.push_back(
        {.ids = Part<int32_t>(sparse.ids(), next, size),
         .weights = Part<float>(weights.values, next, size),
         .token_strings = Part<std::string>(sparse.token_strings(), next, size)});
    next += size;
  }
  return next == count ? absl::OkStatus() : Contradiction("sparse");
}

absl::Status ReadFillMask(const v1::EncodeResponse& response, EncodeResult& result) {
  const v1::MaskPredictions& all = response.fill_mask();
  ATTENDANT_ASSIGN_OR_RETURN(const Tensor scores, FromProto(all.scores()));
  if (scores.shape.size() != 2 ||
      all.token_ids_size() != static_cast<int64_t>(scores.values.size())) {
    return Contradiction("fill_mask");
  }
  ATTENDANT_RETURN_IF_ERROR(
      CheckStrings("fill_mask", all.token_strings_size(), all.token_ids_size()));
  const int64_t columns = scores.shape[1];
  int64_t next = 0;
  for (const v1::SequenceInfo& info : response.sequences()) {
    const int64_t masks = info.mask_tokens_size();
    if (masks > scores.shape[0] - next) return Contradiction("fill_mask");
    const int64_t begin = next * columns, count = masks * columns;
    result.fill_mask.push_back(
        {.mask_tokens = {info.mask_tokens().begin(), info.mask_tokens().end()},
         .scores = Rows(scores, next, masks),
         .token_ids = Part<int32_t>(all.token_ids(), begin, count),
         .token_strings = Part<std::string>(all.token_strings(), begin, count)});
    next += masks;
  }
  return next == scores.shape[0] ? absl::OkStatus() : Contradiction("fill_mask");
}

absl::Status ReadTokenScores(const v1::EncodeResponse& response, EncodeResult& result) {
  ATTENDANT_ASSIGN_OR_RETURN(result.token_scores, FromProto(response.token_scores()));
  int64_t tokens = 0;
  for (const SequenceInfo& info : result.sequences) tokens += info.tokens;
  const std::vector<int64_t>& shape = result.token_scores.shape;
  const bool fits = shape.size() == 2 && shape[0] == tokens;
  return fits ? absl::OkStatus() : Contradiction("token_scores");
}

absl::Status ReadMultiVectors(const v1::EncodeResponse& response, EncodeResult& result) {
  ATTENDANT_ASSIGN_OR_RETURN(const Tensor vectors, FromProto(response.multi_vectors()));
  if (vectors.shape.size() != 2) return Contradiction("multi_vectors");
  int64_t next = 0;
  for (const v1::SequenceInfo& info : response.sequences()) {
    const int64_t rows = info.vector_tokens_size();
    if (rows > vectors.shape[0] - next) return Contradiction("multi_vectors");
    result.multi_vectors.push_back(
        {.tokens = {info.vector_tokens().begin(), info.vector_tokens().end()},
         .vectors = Rows(vectors, next, rows)});
    next += rows;
  }
  return next == vectors.shape[0] ? absl::OkStatus() : Contradiction("multi_vectors");
}

absl::Status ReadWords(const v1::EncodeResponse& response, EncodeResult& result) {
  const v1::WordWeights& all = response.words();
  ATTENDANT_ASSIGN_OR_RETURN(const Tensor weights, FromProto(all.weights()));
  const int64_t count = all.words_size();
  if (weights.shape != std::vector<int64_t>{count}) return Contradiction("words");
  int64_t next = 0;
  for (const v1::SequenceInfo& info : response.sequences()) {
    const int64_t size = info.words();
    if (size < 0 || size > count - next) return Contradiction("words");
    result.words.push_back({.words = Part<std::string>(all.words(), next, size),
                            .weights = Part<float>(weights.values, next, size)});
    next += size;
  }
  return next == count ? absl::OkStatus() : Contradiction("words");
}

}  // namespace

void FillTasks(const EncodeRequest& request, v1::OutputSelection& outputs) {
  if (request.sparse.has_value()) outputs.mutable_sparse()->set_top_k(request.sparse->top_k);
  if (request.fill_mask.has_value()) {
    outputs.mutable_fill_mask()->set_top_k(request.fill_mask->top_k);
    outputs.mutable_fill_mask()->set_raw(request.fill_mask->raw);
  }
  if (request.token_scores.has_value()) {
    outputs.mutable_token_scores()->set_raw(request.token_scores->raw);
  }
  if (request.multi_vector) outputs.mutable_multi_vector();
  if (request.word_weights) outputs.mutable_word_weights();
}

absl::Status ReadTasks(const v1::EncodeResponse& response, EncodeResult& result) {
  if (response.has_sparse()) ATTENDANT_RETURN_IF_ERROR(ReadSparse(response, result));
  if (response.has_fill_mask()) ATTENDANT_RETURN_IF_ERROR(ReadFillMask(response, result));
  if (response.has_token_scores()) ATTENDANT_RETURN_IF_ERROR(ReadTokenScores(response, result));
  if (response.has_multi_vectors()) ATTENDANT_RETURN_IF_ERROR(ReadMultiVectors(response, result));
  if (response.has_words()) ATTENDANT_RETURN_IF_ERROR(ReadWords(response, result));
  return absl::OkStatus();
}

}  // namespace attendant::client
