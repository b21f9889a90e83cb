// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/protocols/typed_message.h"
#include "server/requests/encode_run.h"
#include "server/requests/only_model.h"
#include "tei/v1/tei.pb.h"

// The parts that the runs of tei.v1 share.
namespace attendant::tei {

namespace v1 = ::tei::v1;

// INVALID_ARGUMENT for an unknown direction.
absl::StatusOr<Truncation> TruncationFromProto(bool truncate, v1::TruncationDirection direction);

// FAILED_PRECONDITION for a model without a classifier.
absl::Status CheckClassifier(const EncoderModel& model);

void SetMetadata(const RequestTimes& times, int64_t chars, int64_t tokens, v1::Metadata& metadata);

// A run of the messages M and R. Derived classes give FromMessage and Fill.
template <typename M, typename R>
class TeiRun : public EncodeRun {
 public:
  using Request = M;
  using Response = R;

  TeiRun(const EncodeDependencies& dependencies, RequestCall call, R& response)
      : EncodeRun(dependencies, std::move(call)), response_(response) {}

 protected:
  const M& request() const { return Parsed<M>(message()); }
  // Counts texts of the request in compute_chars.
  void AddCharacters(int64_t characters) { chars_ += characters; }

  // The answer but for its metadata.
  virtual void Fill(EncodeOutput& output, R& response) = 0;

 private:
  absl::StatusOr<std::shared_ptr<EncoderModel>> FindModel() final {
    return FindUnnamedModel(dependencies(), call());
  }
  void ToMessage(EncodeOutput& output) final {
    Fill(output, response_);
    SetMetadata(times(), chars_, output.tokens(), *response_.mutable_metadata());
  }
  int64_t AnswerBytes() const final { return static_cast<int64_t>(response_.ByteSizeLong()); }

  R& response_;
  int64_t chars_ = 0;
};

}  // namespace attendant::tei
