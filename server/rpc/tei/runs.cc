// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/runs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace attendant::tei {
namespace {

uint64_t Nanoseconds(absl::Duration duration) {
  return static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Nanoseconds(duration), 0));
}

}  // namespace

absl::StatusOr<Truncation> TruncationFromProto(bool truncate, v1::TruncationDirection direction) {
  switch (direction) {
    case v1::TRUNCATION_DIRECTION_RIGHT:
      return truncate ? Truncation::kRight : Truncation::kNone;
    case v1::TRUNCATION_DIRECTION_LEFT:
      return truncate ? Truncation::kLeft : Truncation::kNone;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "truncation_direction is ", static_cast<int>(direction), ", it must be 0 or 1"));
  }
}

absl::Status CheckClassifier(const EncoderModel& model) {
  if (model.classifier.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("model '", model.name, "' is no classifier and no reranker"));
}

void SetMetadata(const RequestTimes& times, int64_t chars, int64_t tokens, v1::Metadata& metadata) {
  metadata.set_compute_chars(static_cast<uint32_t>(chars));
  metadata.set_compute_tokens(static_cast<uint32_t>(tokens));
  metadata.set_total_time_ns(Nanoseconds(times.total()));
  metadata.set_tokenization_time_ns(Nanoseconds(times.decode));
  metadata.set_queue_time_ns(Nanoseconds(times.queue));
  metadata.set_inference_time_ns(Nanoseconds(times.compute));
}

}  // namespace attendant::tei
