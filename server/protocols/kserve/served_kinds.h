// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

// The kinds of names that KServe clients know a model by, and all that depends on them. A new one
// is a row of the table in served_kinds.cc.
//
//   name                rows  outputs
//   NAME                text  sentence_embedding [n, dims]
//   NAME.ids            ids   sentence_embedding [n, dims]
//   NAME.encoder        ids   last_hidden_state [n, len, hidden]
//   NAME.scores         text, or a pair of texts; scores [n, labels]
//   NAME.sparse         text  indices [n, weights] INT32, weights [n, weights]
//   NAME.masks          text  tokens [n, masks] INT32, indices [n, masks, k] INT32, scores alike
//   NAME.tokens         text  token_ids [n, len] INT32, scores [n, len, labels]
//   NAME.multi_vectors  text  tokens [n, vectors] INT32, vectors [n, vectors, dims]
//
// Numbers are FP32. `tokens` are places in the sequence: of the mask, and of the token that a
// vector is of. The results of heads on tokens differ in length from text to text: their tensors
// are padded to the longest, integers with -1 and numbers with 0.
namespace attendant {

struct TensorSpec;

// Adds the output tensor of `spec` to an answer, with raw contents. `seq`: of ids, the padded
// length. REQUIRES: `output` holds what the kind asks for.
using AddTensor = void (*)(const EncodeOutput& output, const TensorSpec& spec, int64_t seq,
                           inference::ModelInferResponse& response);

// One tensor of a model. The batch dimension comes first and is not in `dims`.
struct TensorSpec {
  absl::string_view name;
  absl::string_view datatype;  // "INT64", as requests and metadata say it
  inference::DataType data_type = inference::TYPE_INVALID;  // the same, as a configuration says it
  std::vector<int64_t> dims;                                // -1: any size
  int64_t max_width = 0;                                    // of an input: the most values of a row
  bool optional = false;
  AddTensor add = nullptr;  // of an output
};

// The texts of a row: a text or a pair.
inline constexpr int64_t kMaxRowTexts = 2;

struct ServedKind {
  absl::string_view suffix;  // behind the model's name
  int64_t max_texts = 0;     // of a row of the input: 1, or kMaxRowTexts; 0: it has ids
  // Names the feature that a model of texts lacks for this kind, for an error; empty if it lacks
  // none.
  std::string (*lacks)(const EncoderFacts& facts) = nullptr;
  // Adds to a request what the outputs are made of.
  void (*ask)(EncodeInput& input) = nullptr;
  std::vector<TensorSpec> (*outputs)(const EncoderFacts& facts) = nullptr;
  // The sizes of the outputs are known only with the results. Else it has one output, and the
  // shapes of the inputs tell its size (RowValues).
  bool sized_by_results = false;

  bool takes_texts() const { return max_texts > 0; }
  std::string NameOf(absl::string_view model) const;
  std::vector<TensorSpec> inputs(const EncoderFacts& facts) const;
};

// All of them, in the order in which clients see them; NAME itself is the first.
std::span<const ServedKind> ServedKinds();

// "minilm.ids" -> {"minilm", the kind of NAME.ids}. The part before the suffix views `name`.
std::pair<absl::string_view, const ServedKind*> SplitServedName(absl::string_view name);

// NOT_FOUND for a name that the model does not have: one that takes texts without a tokenizer, or
// one of an output that the model does not make.
absl::Status CheckServed(absl::string_view name, const ServedKind& kind, const EncoderFacts& facts);

// The values of an output's row, where `seq` stands for the size -1.
int64_t RowValues(const TensorSpec& spec, int64_t seq);

std::string TensorNames(const std::vector<TensorSpec>& specs);  // "input_ids, attention_mask"

}  // namespace attendant
