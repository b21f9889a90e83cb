// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/config_fields.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

template <typename Number>
absl::Status ReadNumberAtLeast(const JsonNode& json, const char* field, Number least,
                               Number& value) {
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(json.where(), ": `", field, "` is ", value, ", it must be at least ", least));
}

}  // namespace

absl::Status Unsupported(const JsonNode& json, absl::string_view field, absl::string_view value,
                         absl::string_view supported) {
  return absl::UnimplementedError(
      absl::StrCat(json.where(), ": ", Quoted(field), " is ", value, ", supported is ", supported));
}

absl::Status CheckFalse(const JsonNode& json, const char* field) {
  bool value = false;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  return value ? Unsupported(json, field, "true", "false") : absl::OkStatus();
}

absl::Status CheckText(const JsonNode& json, const char* field, const std::string& only) {
  std::string value = only;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  return value == only ? absl::OkStatus() : Unsupported(json, field, Quoted(value), Quoted(only));
}

absl::Status CheckNumber(const JsonNode& json, const char* field, int64_t only) {
  int64_t value = only;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  if (value == only) return absl::OkStatus();
  return Unsupported(json, field, absl::StrCat(value), absl::StrCat(only));
}

absl::Status ReadAtLeast(const JsonNode& json, const char* field, int64_t least, int64_t& value) {
  return ReadNumberAtLeast(json, field, least, value);
}

absl::Status ReadAtLeast(const JsonNode& json, const char* field, double least, double& value) {
  return ReadNumberAtLeast(json, field, least, value);
}

absl::Status ReadLayerNormEpsilon(const JsonNode& json, const char* field, double epsilon,
                                  float& to) {
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, epsilon));
  // Before it is narrowed, which is undefined beyond f32's range.
  if (!(epsilon > 0 && epsilon < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(json.where(), ": `", field, "` is ", epsilon, ", it must be between 0 and 1"));
  }
  to = static_cast<float>(epsilon);
  return absl::OkStatus();
}

}  // namespace attendant
