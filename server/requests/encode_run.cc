// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_run.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/core/pooling.h"
#include "kernels/core/status_macros.h"
#include "server/requests/encode_validation.h"
#include "server/requests/outputs/late_scores.h"
#include "server/requests/outputs/lookup.h"
#include "server/requests/outputs/sequence_strings.h"
#include "server/requests/outputs/spans.h"
#include "server/requests/outputs/word_weights.h"
#include "server/requests/tasks.h"

namespace attendant {

namespace {

// The memory of a sequence for each byte of a prompt's or chat template's text, and for each token
// beside the text: ids, positions and segments, twice.
constexpr int64_t kBytesPerToken = 24;

// Pooled vectors that go through the modules together: a module's weight is read once for them, and
// they stay in the cache meanwhile.
constexpr size_t kRowsAtOnce = 32;

int64_t PromptBytes(const EncoderModel& model, const Prompt* prompt) {
  if (const PairForm* form = model.prompts.FindPairForm(prompt)) {
    return kBytesPerToken * form->fixed_bytes();
  }
  if (prompt == nullptr) return 0;
  int64_t beside = 0;
  if (prompt->form.has_value()) beside = prompt->form->filler ? prompt->form->filled_tokens : 1;
  return kBytesPerToken * (static_cast<int64_t>(prompt->text.size()) + beside);
}

absl::StatusOr<int64_t> PromptBytes(const EncoderModel& model, const EncodeInput& input) {
  if (input.compares()) {
    const PairPrompts prompts = FindPairPrompts(model);
    return std::max(PromptBytes(model, prompts.query), PromptBytes(model, prompts.document));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const Prompt* prompt, model.prompts.Find(input.prompt_name));
  return PromptBytes(model, prompt);
}

}  // namespace

absl::StatusOr<std::shared_ptr<EncoderModel>> EncodeRun::FindModel() {
  return dependencies().models.Find(call().model, ModelVersion());
}

absl::StatusOr<std::shared_ptr<ServableModel>> EncodeRun::Decode() {
  ATTENDANT_ASSIGN_OR_RETURN(model_, FindModel());
  ATTENDANT_ASSIGN_OR_RETURN(input_, FromMessage());
  ATTENDANT_RETURN_IF_ERROR(SplitPairs(*model_, input_));
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t prompt_bytes, PromptBytes(*model_, input_));
  sequence_bytes_ = (kSequenceBytes + prompt_bytes) * static_cast<int64_t>(input_.sequences.size());
  prompt_bytes_ = prompt_bytes / kBytesPerToken;
  ATTENDANT_RETURN_IF_ERROR(AcquireRequest(sequence_bytes_));
  return model_;
}

// A query and a prompt count once for each text: they are tokenized so often.
int64_t EncodeRun::PrepareBytes() const {
  size_t bytes = 0;
  for (const SequenceContent& content : input_.sequences) {
    if (const auto* text = std::get_if<std::string>(&content)) bytes += text->size();
    if (const auto* pair = std::get_if<TextPair>(&content)) {
      bytes += pair->first->size() + pair->second.size();
    }
  }
  return static_cast<int64_t>(bytes) +
         prompt_bytes_ * static_cast<int64_t>(input_.sequences.size());
}

absl::StatusOr<WorkRequest> EncodeRun::Prepare() {
  ATTENDANT_ASSIGN_OR_RETURN(WorkRequest request,
                             ValidateEncode(*model_, limits_, std::move(input_), output_));
  ATTENDANT_RETURN_IF_ERROR(AcquireResponse(output_.response_bytes + output_.vector_bytes +
                                            TextBytes(output_) + sequence_bytes_ + kAnswerBytes));
  return request;
}

void EncodeRun::Answer(Work work) {
  std::vector<SequenceResult> results = std::move(std::get<EncodeWork>(work).results);
  work = EncodeWork();  // frees the inputs before the answer takes memory
  if (output_.query_of.empty()) {
    TakeResults(std::move(results));
  } else {
    ScorePairs(*model_, std::move(results), output_);
  }
  FillStrings(*model_, output_);
  ToMessage(output_);
}

// A fully masked sequence was never computed: its pooled vectors and its scores are zeros. Nor was
// one that was looked up.
void EncodeRun::TakeResults(std::vector<SequenceResult> results) {
  auto next = results.begin();
  for (EncodedSequence& sequence : output_.sequences) {
    const bool looked_up = TakeLookup(sequence);
    if (!looked_up && sequence.unmasked_tokens() > 0) {
      sequence.result = std::move(*next++);
      if (output_.pooled_width > 0) MakeEmbeddings(sequence);
    } else if (output_.outputs.pooling != Pooling::kNone) {
      const size_t rows = std::max<size_t>(sequence.rare_outputs().spans.size(), 1);
      sequence.result.pooled.assign(rows * static_cast<size_t>(output_.outputs.dims), 0.0f);
    }
    if (output_.scores.has_value()) Score(sequence);
    if (output_.word_weights) WeighWords(*model_, sequence);
    sequence.result.tasks.resize(output_.tasks.size());
    sequence.task_strings.resize(output_.tasks.size());
    NameResults(*model_, output_, sequence);
  }
}

void EncodeRun::MakeEmbeddings(EncodedSequence& sequence) const {
  const std::vector<float> pooled = std::move(sequence.result.pooled);
  const auto width = static_cast<size_t>(output_.pooled_width);
  const size_t rows = std::max<size_t>(sequence.rare_outputs().spans.size(), 1);
  std::vector<float> embeddings;
  embeddings.reserve(rows * static_cast<size_t>(output_.outputs.dims));
  for (size_t first = 0; first < rows; first += kRowsAtOnce) {
    const size_t count = std::min(kRowsAtOnce, rows - first);
    const float* begin = pooled.data() + first * width;
    AddEmbeddings(model_->sentence.head.Compute({begin, begin + count * width}, count), count,
                  embeddings);
  }
  ClearEmptySpans(sequence, embeddings);
  sequence.result.pooled = std::move(embeddings);
}

void EncodeRun::AddEmbeddings(const std::vector<float>& made, size_t rows,
                              std::vector<float>& embeddings) const {
  const auto dims = static_cast<size_t>(output_.outputs.dims);
  for (size_t row = 0; row < rows; ++row) {
    const float* from = made.data() + row * (made.size() / rows);
    embeddings.insert(embeddings.end(), from, from + dims);
    if (output_.outputs.normalize) NormalizeL2(std::span(embeddings).last(dims));
  }
}

void EncodeRun::ClearEmptySpans(const EncodedSequence& sequence,
                                std::vector<float>& embeddings) const {
  const auto dims = static_cast<size_t>(output_.outputs.dims);
  const int32_t first_pooled = FirstPooled(*model_, sequence);
  for (size_t i = 0; i < sequence.rare_outputs().spans.size(); ++i) {
    if (HasPooledToken(sequence, sequence.rare_outputs().spans[i], first_pooled)) continue;
    std::fill_n(embeddings.begin() + static_cast<std::ptrdiff_t>(i * dims), dims, 0.0f);
  }
}

void EncodeRun::Score(EncodedSequence& sequence) const {
  const SequenceClassifier& classifier = *model_->classifier;
  sequence.scores.resize(static_cast<size_t>(classifier.num_labels()));
  const std::vector<float> pooled = std::exchange(sequence.result.pooled, {});
  if (sequence.unmasked_tokens() == 0) return;
  classifier.ComputeLogits(pooled, sequence.scores);
  ApplyActivation(*output_.scores, sequence.scores);
}

RequestTokens EncodeRun::CountTokens(ModelMetrics& metrics) const {
  RequestTokens all;
  for (const std::vector<EncodedSequence>* sequences : {&output_.sequences, &output_.queries}) {
    all.sequences += static_cast<int64_t>(sequences->size());
    for (const EncodedSequence& sequence : *sequences) {
      const int64_t tokens = sequence.unmasked_tokens();
      all.valid += tokens;
      all.padding += sequence.len() - tokens;
      metrics.ObserveSequence(tokens);
    }
  }
  return all;
}

}  // namespace attendant
