// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/core/outputs.h"
#include "kernels/heads/sequence_classifier.h"
#include "server/batching/request.h"
#include "server/requests/number_format.h"

namespace attendant {

// Token ids as a client sends them: 64-bit until they are checked.
struct IdsInput {
  std::vector<int64_t> token_ids;       // [len]
  std::vector<int64_t> segment_ids;     // [len], or empty: all 0
  std::vector<uint8_t> attention_mask;  // [len], or empty: all 1
};

// Two texts that become one sequence: a query and a passage.
struct TextPair {
  std::shared_ptr<const std::string> first;  // of many pairs
  std::string second;
};

using SequenceContent = std::variant<std::string, TextPair, IdsInput>;

enum class Truncation { kTextOnly, kNone, kRight };

// An encode request in the server's own words. Every protocol translates its message to this.
struct EncodeInput {
  std::vector<SequenceContent> sequences;
  bool last_hidden_state = false;
  bool pooled = false;
  std::optional<Pooling> pooling;                   // unset: as the model says
  std::optional<bool> normalize;                    // unset: as the model says
  int64_t dims = 0;                                 // 0: all
  bool scores = false;                              // of the model's classifier; excludes `pooled`
  bool one_score = false;                           // the model must have one label
  std::optional<ScoreActivation> score_activation;  // unset: as the model says
  bool attention_weights = false;
  LayerSelection layers;  // no attention layers or heads: all of them; `hidden` is unset
  bool token_strings = false;
  Truncation truncation = Truncation::kTextOnly;
  int priority = 0;
};

// One of the client's sequences, from its tokens to its results.
struct EncodedSequence {
  std::vector<int32_t> token_ids;          // [len], after truncation, with the masked tokens
  std::vector<int32_t> segment_ids;        // [len], until the sequence goes to the batcher
  std::vector<uint8_t> attention_mask;     // [len], or empty: all 1
  std::vector<std::string> token_strings;  // [len], or empty: not asked for
  bool truncated = false;
  std::vector<float> scores;  // [labels], if asked for
  SequenceResult result;      // hidden states and attention weights of the unmasked tokens only

  int64_t len() const { return static_cast<int64_t>(token_ids.size()); }
  bool masked(size_t token) const { return !attention_mask.empty() && attention_mask[token] == 0; }
  int64_t unmasked_tokens() const {
    return len() - std::count(attention_mask.begin(), attention_mask.end(), 0);
  }
};

// A result covers unmasked tokens only. These functions spread it over all of a sequence's tokens.
//
// Writes hidden states `values` [unmasked tokens, hidden] as [len, hidden], with zero rows for the
// masked tokens. `rows` has space for len * hidden values.
void ScatterRows(const EncodedSequence& sequence, int64_t hidden, const float* values, float* rows);
// Appends what ScatterRows writes, in `format`.
void AppendHiddenState(const EncodedSequence& sequence, int64_t hidden, const float* values,
                       NumberFormat format, std::string& bytes);
// Appends the result's attention weights, [maps, unmasked, unmasked], as [maps, len, len], with
// zeros in the rows and columns of masked tokens.
void AppendAttentionWeights(const EncodedSequence& sequence, int64_t maps, NumberFormat format,
                            std::string& bytes);

// The answer to an encode request in the server's own words. Every protocol translates it to its
// message.
struct EncodeOutput {
  std::vector<EncodedSequence> sequences;
  SequenceOutputs outputs;                // of each sequence, with the model's defaults filled in
  LayerSelection layers;                  // with every layer and head listed
  std::optional<ScoreActivation> scores;  // asked for
  int64_t response_bytes = 0;   // of the tensors asked for, as f32, and of the token strings
  int64_t attention_bytes = 0;  // of the attention weights among them
};

}  // namespace attendant
