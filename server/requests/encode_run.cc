// SPDX-License-Identifier: Apache-2.0
#include "server/requests/encode_run.h"

#include <utility>

#include "kernels/core/status_macros.h"
#include "server/requests/encode_validation.h"

namespace attendant {

absl::StatusOr<std::shared_ptr<ServableModel>> EncodeRun::Decode() {
  ATTENDANT_ASSIGN_OR_RETURN(model_, FindModel());
  ATTENDANT_ASSIGN_OR_RETURN(input_, FromMessage());
  sequence_bytes_ = kSequenceBytes * static_cast<int64_t>(input_.sequences.size());
  ATTENDANT_RETURN_IF_ERROR(AcquireRequest(sequence_bytes_));
  return model_;
}

absl::StatusOr<PendingRequest> EncodeRun::Prepare() {
  ATTENDANT_ASSIGN_OR_RETURN(PendingRequest pending,
                             ValidateEncode(*model_, limits_, std::move(input_), output_));
  ATTENDANT_RETURN_IF_ERROR(AcquireResponse(output_.response_bytes + TextBytes(output_) +
                                            sequence_bytes_ + kAnswerBytes));
  return pending;
}

// Puts the batcher's results beside the sequences they belong to. A fully masked sequence was never
// computed: its pooled vector and its scores are zeros.
void EncodeRun::Answer(RequestResult result) {
  auto next = result.sequences.begin();
  for (EncodedSequence& sequence : output_.sequences) {
    if (sequence.unmasked_tokens() > 0) {
      sequence.result = std::move(*next++);
    } else if (output_.outputs.pooling != Pooling::kNone) {
      sequence.result.pooled.assign(static_cast<size_t>(output_.outputs.dims), 0.0f);
    }
    if (output_.scores.has_value()) Score(sequence);
  }
  ToMessage(output_);
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
  RequestTokens all{.sequences = static_cast<int64_t>(output_.sequences.size())};
  for (const EncodedSequence& sequence : output_.sequences) {
    const int64_t tokens = sequence.unmasked_tokens();
    all.valid += tokens;
    all.padding += sequence.len() - tokens;
    metrics.ObserveSequence(tokens);
  }
  return all;
}

}  // namespace attendant
