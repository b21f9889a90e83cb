// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"

namespace attendant {

// KServe clients number priorities from 1, the highest; 0 stands for the default. Ours run from
// -100 to 100, higher first: priority = kDefaultPriorityLevel - level.
inline constexpr uint64_t kPriorityLevels = 201;
inline constexpr uint64_t kDefaultPriorityLevel = 101;

using InferParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

struct InferParameters {
  int priority = 0;  // the server's own
  absl::Duration timeout = absl::InfiniteDuration();
};

// Reads `priority` and `timeout` (microseconds; 0 is none). Other parameters say nothing about how
// an encoder runs and are let pass. INVALID_ARGUMENT for a value of the wrong type or out of range.
absl::StatusOr<InferParameters> DecodeInferParameters(const InferParameterMap& parameters);

// Refuses what would make a tensor travel or look otherwise than inside the message: shared memory
// (UNIMPLEMENTED) and classification of an output (UNIMPLEMENTED). `tensor` is for the message.
absl::Status CheckTensorParameters(absl::string_view tensor, const InferParameterMap& parameters);

}  // namespace attendant
