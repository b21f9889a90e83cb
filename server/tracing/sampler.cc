// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/sampler.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

absl::StatusOr<double> ParseShare(absl::string_view text) {
  if (text.empty()) return 1.0;
  double share = 0;
  if (absl::SimpleAtod(text, &share) && share >= 0 && share <= 1) return share;
  return absl::InvalidArgumentError(
      absl::StrCat(Quote(text), " is not a share: it must be from 0 to 1"));
}

}  // namespace

// A share of 1 has no bound of 64 bits.
Sampler::Sampler(double share, bool follows_caller)
    : bound_(share < 1 ? static_cast<uint64_t>(std::ldexp(share, 64)) : 0),
      all_(share >= 1),
      follows_caller_(follows_caller) {}

absl::StatusOr<Sampler> Sampler::Parse(absl::string_view name, absl::string_view share) {
  absl::string_view root = name;
  const bool follows_caller = absl::ConsumePrefix(&root, "parentbased_");
  if (root == "always_on") return Sampler(1, follows_caller);
  if (root == "always_off") return Sampler(0, follows_caller);
  if (root != "traceidratio") {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(name),
                     " is not a sampler: there are always_on, always_off and traceidratio, and the "
                     "same with parentbased_ before them"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const double ratio, ParseShare(share));
  return Sampler(ratio, follows_caller);
}

bool Sampler::Samples(std::optional<bool> caller, uint64_t trace_low) const {
  if (follows_caller_ && caller.has_value()) return *caller;
  return all_ || trace_low < bound_;
}

}  // namespace attendant
