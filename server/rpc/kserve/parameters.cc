// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/kserve/parameters.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/quote.h"
#include "server/rpc/kserve/metadata.h"

namespace attendant {
namespace {

// The value of an integer parameter, 0 when it is not there. Clients send either signedness.
absl::StatusOr<int64_t> IntegerParameter(const InferParameterMap& parameters,
                                         const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return 0;
  const inference::InferParameter& value = found->second;
  const bool is_signed = value.has_int64_param();
  if (!is_signed && !value.has_uint64_param()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", name, "' must be an integer (int64_param or uint64_param)"));
  }
  if (is_signed && value.int64_param() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", name, "' is ", value.int64_param(), ", the minimum is 0"));
  }
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (!is_signed && value.uint64_param() > kMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", name, "' is ", value.uint64_param(), ", the limit is ", kMax));
  }
  return is_signed ? value.int64_param() : static_cast<int64_t>(value.uint64_param());
}

}  // namespace

absl::StatusOr<InferParameters> DecodeInferParameters(const InferParameterMap& parameters) {
  const absl::StatusOr<int64_t> level = IntegerParameter(parameters, "priority");
  if (!level.ok()) return level.status();
  const absl::StatusOr<int64_t> timeout_us = IntegerParameter(parameters, "timeout");
  if (!timeout_us.ok()) return timeout_us.status();

  constexpr int64_t kLevels = kPriorityLevels;
  constexpr int64_t kDefaultLevel = kDefaultPriorityLevel;
  if (*level > kLevels) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'priority' is ", *level, ", the limit is ", kLevels));
  }
  InferParameters decoded;
  if (*level > 0) decoded.priority = static_cast<int>(kDefaultLevel - *level);
  if (*timeout_us > 0) decoded.timeout = absl::Microseconds(*timeout_us);
  return decoded;
}

absl::Status CheckTensorParameters(absl::string_view tensor, const InferParameterMap& parameters) {
  for (const char* name :
       {"shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"}) {
    if (!parameters.contains(name)) continue;
    return absl::UnimplementedError(absl::StrCat("tensor ", Quote(tensor), " has parameter '", name,
                                                 "': shared memory is not supported"));
  }
  const auto classification = parameters.find("classification");
  if (classification == parameters.end() || classification->second.int64_param() == 0) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("tensor ", Quote(tensor),
                   " has parameter 'classification': an encoder's outputs are not class scores"));
}

}  // namespace attendant
