// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/families/rotary_fields.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {

absl::Status ReadRopeParameters(const JsonNode& parameters, double default_base, Rotary& rotary) {
  std::string type = "default";
  ATTENDANT_RETURN_IF_ERROR(parameters.Read("rope_type", type));
  if (type != "default") {
    return Unsupported(parameters, "rope_type", Quoted(type), Quoted("default"));
  }
  double part = 1;
  ATTENDANT_RETURN_IF_ERROR(parameters.Read("partial_rotary_factor", part));
  if (part != 1) return Unsupported(parameters, "partial_rotary_factor", absl::StrCat(part), "1");
  rotary.base = default_base;
  return parameters.Read("rope_theta", rotary.base);
}

}  // namespace attendant
