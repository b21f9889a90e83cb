// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "inference/grpc_service.pb.h"
#include "server/protocols/kserve/served_kinds.h"
#include "server/requests/encode_types.h"

// The results of sequences as the rows of output tensors.
namespace attendant {

// The values of a sequence that a tensor may have.
inline const std::vector<float>& PooledOf(const EncodedSequence& sequence) {
  return sequence.result.pooled;
}
inline const std::vector<float>& ScoresOf(const EncodedSequence& sequence) {
  return sequence.scores;
}
inline const std::vector<int32_t>& IdsOf(const EncodedSequence& sequence) {
  return sequence.token_ids;
}
// Of the request's one head on tokens.
inline const std::vector<int32_t>& IndicesOf(const EncodedSequence& sequence) {
  return sequence.result.tasks[0].indices;
}
inline const std::vector<int32_t>& PlacesOf(const EncodedSequence& sequence) {
  return sequence.result.tasks[0].tokens;
}
inline const std::vector<float>& ValuesOf(const EncodedSequence& sequence) {
  return sequence.result.tasks[0].values;
}

// Adds a tensor with a row for each sequence, those of `values_of` padded to the longest one.
void AddPadded(const EncodeOutput& output, const TensorSpec& spec,
               const std::vector<float>& (*values_of)(const EncodedSequence&),
               inference::ModelInferResponse& response);
void AddPadded(const EncodeOutput& output, const TensorSpec& spec,
               const std::vector<int32_t>& (*values_of)(const EncodedSequence&),
               inference::ModelInferResponse& response);

// An output whose rows are those of `kValuesOf`, one of the functions above.
template <auto kValuesOf>
TensorSpec Padded(absl::string_view name, std::vector<int64_t> dims) {
  constexpr bool kIntegers =
      std::is_same_v<decltype(kValuesOf(std::declval<const EncodedSequence&>())),
                     const std::vector<int32_t>&>;
  return {.name = name,
          .datatype = kIntegers ? "INT32" : "FP32",
          .data_type = kIntegers ? inference::TYPE_INT32 : inference::TYPE_FP32,
          .dims = std::move(dims),
          .add = [](const EncodeOutput& output, const TensorSpec& spec, int64_t /*seq*/,
                    inference::ModelInferResponse& response) {
            AddPadded(output, spec, kValuesOf, response);
          }};
}

// The output of hidden states, with zeros where the mask is 0.
TensorSpec HiddenStates(absl::string_view name, std::vector<int64_t> dims);

}  // namespace attendant
