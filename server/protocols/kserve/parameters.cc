// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/parameters.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/protocols/kserve/models.h"

namespace attendant {
namespace {

constexpr char kPromptName[] = "prompt_name";
constexpr char kSharedRegion[] = "shared_memory_region";
constexpr char kSharedBytes[] = "shared_memory_byte_size";
constexpr char kSharedOffset[] = "shared_memory_offset";

// The value of an integer parameter, 0 without it. Clients send either signedness.
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

absl::StatusOr<InferParameters> FromProto(const InferParameterMap& parameters) {
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t level, IntegerParameter(parameters, kPriorityName));
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t timeout_us, IntegerParameter(parameters, "timeout"));
  constexpr int64_t kLevels = kPriorityLevels;
  constexpr int64_t kDefaultLevel = kDefaultPriorityLevel;
  if (level > kLevels) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'priority' is ", level, ", the limit is ", kLevels));
  }
  InferParameters decoded;
  if (level > 0) decoded.priority = static_cast<int>(kDefaultLevel - level);
  if (timeout_us > 0) decoded.timeout = absl::Microseconds(timeout_us);
  const auto prompt = parameters.find(kPromptName);
  if (prompt == parameters.end()) return decoded;
  if (!prompt->second.has_string_param()) {
    return absl::InvalidArgumentError("parameter 'prompt_name' must be a text (string_param)");
  }
  decoded.prompt_name = prompt->second.string_param();
  return decoded;
}

absl::StatusOr<std::optional<SharedTensor>> SharedTensorFromProto(
    absl::string_view tensor, const InferParameterMap& parameters) {
  const auto region = parameters.find(kSharedRegion);
  if (region == parameters.end()) return std::nullopt;
  SharedTensor shared{.region = region->second.string_param()};
  ATTENDANT_ASSIGN_OR_RETURN(shared.bytes, IntegerParameter(parameters, kSharedBytes));
  ATTENDANT_ASSIGN_OR_RETURN(shared.offset, IntegerParameter(parameters, kSharedOffset));
  if (shared.region.empty() || shared.bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Quote(tensor), " needs ", kSharedRegion, " and ", kSharedBytes));
  }
  return shared;
}

void ToProto(const SharedTensor& shared, InferParameterMap& parameters) {
  parameters[std::string(kSharedRegion)].set_string_param(shared.region);
  parameters[std::string(kSharedBytes)].set_int64_param(shared.bytes);
  if (shared.offset > 0) parameters[std::string(kSharedOffset)].set_int64_param(shared.offset);
}

absl::Status CheckTensorParameters(absl::string_view tensor, const InferParameterMap& parameters,
                                   bool shared_memory) {
  for (const char* name : {kSharedRegion, kSharedBytes, kSharedOffset}) {
    if (shared_memory || !parameters.contains(name)) continue;
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
