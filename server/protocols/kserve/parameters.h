// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"

// The parameters of ModelInfer's messages, to the server's own words.
namespace attendant {

using InferParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

struct InferParameters {
  int priority = 0;  // the server's
  absl::Duration timeout = absl::InfiniteDuration();
  std::optional<std::string> prompt_name{};  // unset: the model's default; empty: none
};

// Reads `priority`, `timeout` (microseconds; 0 is none) and `prompt_name`. Ignores other
// parameters: they say nothing about an encoder. INVALID_ARGUMENT for a value of the wrong type or
// out of range.
absl::StatusOr<InferParameters> FromProto(const InferParameterMap& parameters);

// The place of a tensor in shared memory, from its parameters.
struct SharedTensor {
  std::string region;
  int64_t offset = 0;
  int64_t bytes = 0;
};
// Nothing for a tensor inside the message. INVALID_ARGUMENT, naming the tensor, for parameters of
// the wrong type, or with a part of them missing.
absl::StatusOr<std::optional<SharedTensor>> SharedTensorFromProto(
    absl::string_view tensor, const InferParameterMap& parameters);

void ToProto(const SharedTensor& shared, InferParameterMap& parameters);

// UNIMPLEMENTED, naming the tensor, for parameters that put it into shared memory, unless
// `shared_memory`, or ask for a classification of an output.
absl::Status CheckTensorParameters(absl::string_view tensor, const InferParameterMap& parameters,
                                   bool shared_memory = false);

}  // namespace attendant
