// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/limits/limits.h"
#include "server/requests/encode_types.h"
#include "server/requests/request_run.h"

namespace attendant {

// The dependencies of encode requests. They outlive all requests.
struct EncodeDependencies {
  const RequestDependencies& requests;
  EncodeLimits limits;
};

// The run of an encode request. A protocol derives from it and defines FromMessage and ToMessage.
class EncodeRun : public RequestRun {
 protected:
  EncodeRun(const EncodeDependencies& dependencies, RequestCall call)
      : RequestRun(dependencies.requests, std::move(call)), limits_(dependencies.limits) {}

  // Translates the request message. Checks what this protocol alone can get wrong, and counts
  // before it copies.
  virtual absl::StatusOr<EncodeInput> FromMessage() = 0;
  // Translates to the response message, and frees `output`'s tensors on the way.
  virtual void ToMessage(EncodeOutput& output) = 0;
  // The bytes of the response message beyond `output`'s tensors as f32, where numbers become text.
  virtual int64_t TextBytes(const EncodeOutput& /*output*/) const { return 0; }
  // Finds the model of the request. This one takes RequestCall::model and ModelVersion; a protocol
  // whose clients name models in another way defines its own.
  virtual absl::StatusOr<std::shared_ptr<EncoderModel>> FindModel();

  absl::StatusOr<std::shared_ptr<ServableModel>> Decode() final;
  int64_t PrepareBytes() const final;
  absl::StatusOr<WorkRequest> Prepare() override;
  void Answer(Work work) final;
  RequestTokens CountTokens(ModelMetrics& metrics) const final;

  const EncodeLimits& limits() const { return limits_; }
  const EncodeOutput& output() const { return output_; }
  // REQUIRES: FindModel returned OK.
  const EncoderModel& model() const { return *model_; }

 private:
  // Puts the batcher's results beside the sequences they belong to.
  void TakeResults(std::vector<SequenceResult> results);
  // Makes the embedding, or those of the spans, from what was pooled, where the back end does not.
  void MakeEmbeddings(EncodedSequence& sequence) const;
  // Adds what the modules made of `rows` vectors, cut and normalized.
  void AddEmbeddings(const std::vector<float>& made, size_t rows,
                     std::vector<float>& embeddings) const;
  // Zeros in place of the embeddings of spans without a token that is pooled.
  void ClearEmptySpans(const EncodedSequence& sequence, std::vector<float>& embeddings) const;
  // Makes the scores from the pooled vector, and frees that.
  void Score(EncodedSequence& sequence) const;

  const EncodeLimits& limits_;
  std::shared_ptr<EncoderModel> model_;
  EncodeInput input_;  // from Decode to Prepare
  int64_t sequence_bytes_ = 0;
  int64_t prompt_bytes_ = 0;  // of the prompt before each text, about
  EncodeOutput output_;
};

}  // namespace attendant
