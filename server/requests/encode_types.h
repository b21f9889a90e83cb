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
#include "kernels/core/pooling.h"
#include "kernels/heads/head.h"
#include "kernels/heads/sequence_classifier.h"
#include "server/batching/request.h"
#include "server/requests/formats/number_format.h"
#include "server/text/tokenizer.h"

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

// The treatment of a sequence with more tokens than the model takes.
enum class Truncation {
  kTextOnly,  // a text loses tokens at the side that the model says; ids are refused
  kNone,      // texts and ids are refused
  kRight,     // texts and ids lose their last tokens
  kLeft,      // texts and ids lose their first tokens
};

// The layers and heads whose attention weights and hidden states a request asks for, as it numbers
// them: not checked yet.
struct LayerRequest {
  std::vector<int32_t> attention_layers;  // empty: all, if attention weights are asked for
  std::vector<int32_t> attention_heads;   // likewise
  std::vector<int32_t> hidden_layers;     // empty: none
};

// An encode request in the server's own words. Every protocol translates its message to this.
struct EncodeInput {
  std::vector<SequenceContent> sequences;
  bool last_hidden_state = false;
  bool pooled = false;
  std::optional<Pooling> pooling;  // unset: as the model says
  std::optional<bool> normalize;   // unset: as the model says
  int64_t dims = 0;                // 0: all
  // Late chunking: embeddings of spans in place of those of sequences (CheckSpans, ChooseSpans).
  std::vector<std::vector<TokenSpan>> spans;        // [sequences], or empty: none has its own
  int64_t chunk_tokens = 0;                         // > 0: of spans that a request does not give
  bool scores = false;                              // of the model's classifier; excludes `pooled`
  bool one_score = false;                           // the model must have one label
  std::optional<ScoreActivation> score_activation;  // unset: as the model says
  std::vector<TaskOptions> tasks;                   // of the model's heads
  bool attention_weights = false;
  bool word_weights = false;  // excludes `attention_weights` (ChooseWordWeights)
  LayerRequest layers;
  bool token_strings = false;
  bool token_offsets = false;
  Truncation truncation = Truncation::kTextOnly;
  PairTruncation pair_truncation = PairTruncation::kLongestFirst;
  // > 0: texts, and the second texts of pairs, have no more, even if the model takes more. Second
  // texts and documents are cut to these whatever `truncation` says.
  int64_t max_tokens = 0;
  bool count_tokens = false;               // tokens_seen is told: long texts are read to their end
  std::optional<std::string> prompt_name;  // unset: the model's default; empty: none
  int priority = 0;
  // Not empty: `sequences` are queries, then documents, and document i is scored against query
  // query_of[i] (outputs/late_scores.h).
  std::vector<int32_t> query_of;

  bool compares() const { return !query_of.empty(); }
  size_t num_queries() const { return compares() ? sequences.size() - query_of.size() : 0; }
  bool wants_spans() const { return !spans.empty() || chunk_tokens != 0; }
  // True if the request names embeddings, of sequences or of spans. A request that names no output
  // gets embeddings too.
  bool names_embeddings() const { return pooled || wants_spans(); }
  // Hidden states or attention weights, of which word weights are made.
  bool wants_internals() const {
    return last_hidden_state || !layers.hidden_layers.empty() || attention_weights || word_weights;
  }
};

// One of the client's sequences, from its tokens to its results.
struct EncodedSequence {
  std::vector<int32_t> token_ids;          // [len], after truncation, with the masked tokens
  std::vector<int32_t> segment_ids;        // [len], until the sequence goes to the batcher
  std::vector<uint8_t> attention_mask;     // [len], or empty: all 1
  std::vector<std::string> token_strings;  // [len] in the answer, or empty: not asked for
  int64_t tokens_seen = 0;      // before truncation; without count_tokens, above len() if it is cut
  int64_t prompt_tokens = 0;    // of the prompt before the text, with the special tokens before it
  int64_t attended_tokens = 0;  // tokens attend to the first ones alone; 0: to all
  std::vector<float> scores;    // [labels], if asked for
  // [tasks], each one of the indices in the task's result, or empty: not asked for
  std::vector<std::vector<std::string>> task_strings;
  // Pooled, with spans, is [spans, dims].
  SequenceResult result;  // hidden states and attention weights of the unmasked tokens only

  // Outputs that few requests ask for. A pointer keeps thousands of sequences without them small.
  struct RareOutputs {
    std::vector<TokenOffset> token_offsets{};  // [len] in characters, or empty: ids
    std::vector<TokenSpan> spans{};  // whose embeddings are asked for, in its place; empty: its own
    std::vector<std::string> words{};       // if word weights are asked for
    std::vector<float> word_weights{};      // [words]
    std::optional<HeadResult> looked_up{};  // its sparse vector, for which the encoder does not run
  };
  const RareOutputs& rare_outputs() const {
    static const RareOutputs none;
    return rare_outputs_ == nullptr ? none : *rare_outputs_;
  }
  RareOutputs& MutableRareOutputs() {
    if (rare_outputs_ == nullptr) rare_outputs_ = std::make_unique<RareOutputs>();
    return *rare_outputs_;
  }

  int64_t len() const { return static_cast<int64_t>(token_ids.size()); }
  bool truncated() const { return tokens_seen > len(); }
  bool looked_up() const { return rare_outputs().looked_up.has_value(); }
  bool masked(size_t token) const { return !attention_mask.empty() && attention_mask[token] == 0; }
  int64_t unmasked_tokens() const {
    return len() - std::count(attention_mask.begin(), attention_mask.end(), 0);
  }

 private:
  std::unique_ptr<RareOutputs> rare_outputs_;
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

// An output of a head. Its results are in SequenceResult::tasks and in task_strings at its place.
struct AskedTask {
  TaskKind kind = TaskKind::kSparse;
  int64_t columns = 0;   // of a row of its values; 0: they are no rows
  bool strings = false;  // of the ids in its results
};

// The answer to an encode request in the server's own words. Every protocol translates it to its
// message.
struct EncodeOutput {
  std::vector<EncodedSequence> sequences;
  SequenceOutputs outputs;  // of each sequence, with the model's defaults filled in
  // 0: the back end makes the pooled vectors. Else the pooled vectors that come from the batcher
  // have so many values, and the request's run makes the embeddings from them: it applies the
  // model's modules and outputs.dims and outputs.normalize.
  int64_t pooled_width = 0;
  int64_t hidden = 0;                     // of the model, the width of hidden states
  LayerSelection layers;                  // those asked for
  bool token_strings = false;             // asked for: FillStrings makes them
  bool word_weights = false;              // asked for: `layers` has the attention that they need
  std::optional<ScoreActivation> scores;  // asked for
  std::vector<AskedTask> tasks;           // asked for, each kind at most once
  int64_t response_bytes = 0;     // of the tensors asked for, as f32, and of the token strings
  int64_t attention_bytes = 0;    // of the attention weights among them
  std::vector<int32_t> query_of;  // as in EncodeInput
  std::vector<EncodedSequence> queries;  // whose places `sequences` does not have (ScorePairs)
  int64_t vector_bytes = 0;              // of texts that are compared, and not in the answer

  int64_t tokens() const {  // of all sequences and queries, masked ones included
    int64_t sum = 0;
    for (const EncodedSequence& sequence : sequences) sum += sequence.len();
    for (const EncodedSequence& query : queries) sum += query.len();
    return sum;
  }
};

}  // namespace attendant
