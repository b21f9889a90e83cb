// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "server/batching/request.h"
#include "server/limits/limits.h"
#include "server/models/encoder_model.h"
#include "server/models/sentence/prompts.h"
#include "server/requests/encode_types.h"

// Scores of pairs by a model that has vectors of tokens and no classifier (ColBERT, BGE-M3). The
// texts of a pair are two sequences: the encoder computes each different query and each document
// once, in the ordinary batches. When all have their vectors, each document is scored (MaxSim). The
// cost model leaves that out: it has a few percent of the encoder's operations at most.
namespace attendant {

// True if `model` scores pairs by late interaction.
bool ComparesPairs(const EncoderModel& model);

// Makes the pairs of a request for scores of such a model two texts each (EncodeInput::query_of).
// Leaves all other requests as they are. INVALID_ARGUMENT for a sequence that is no pair of texts,
// for a prompt's name, and for other outputs of tensors beside the scores.
absl::Status SplitPairs(const EncoderModel& model, EncodeInput& input);

// The prompts before the two texts, as sentence-transformers chooses them: `query`; the first of
// `document`, `passage` and `corpus`; where the model has none of these, its default. Null: none.
struct PairPrompts {
  const Prompt* query = nullptr;
  const Prompt* document = nullptr;
};
PairPrompts FindPairPrompts(const EncoderModel& model);

// The functions below are for requests that were split.

// Has the batcher give the vectors of queries and of documents. REQUIRES: `work` has no tasks.
void ChooseVectors(const EncoderModel& model, const EncodeInput& input, EncodeWork& work,
                   EncodeOutput& output);

// For messages: the pair that sequence `index` is of; of a query, the first one, which is searched
// for. Of other requests: `index`.
size_t PairOf(const EncodeInput& input, size_t index);

// Gives a sequence its task, and counts its vectors, which stay in memory until all are there.
// INVALID_ARGUMENT when those of the request take more than an answer may.
absl::Status PlanVectors(const EncoderModel& model, const EncodeLimits& limits, bool is_query,
                         const EncodeWork& work, SequenceInput& sequence, EncodeOutput& output);

// Scores the documents by the vectors in `results`, which are those of the sequences with tokens.
// Then `output.sequences` are the documents, in the order of the pairs, and `output.queries` the
// queries.
void ScorePairs(const EncoderModel& model, std::vector<SequenceResult> results,
                EncodeOutput& output);

}  // namespace attendant
