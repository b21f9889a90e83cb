// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Decides which requests have their spans sent. Immutable.
class Sampler {
 public:
  // All requests, but where a caller says otherwise.
  Sampler() : Sampler(1, /*follows_caller=*/true) {}
  // A share of the traces, from 0 to 1. With `follows_caller`, what a caller has decided for its
  // trace counts instead.
  Sampler(double share, bool follows_caller);

  // The sampler of OTEL_TRACES_SAMPLER (`name`) and OTEL_TRACES_SAMPLER_ARG (`share`); an empty
  // `share` is 1. INVALID_ARGUMENT: there is no such sampler, or its share is not a number from 0
  // to 1.
  static absl::StatusOr<Sampler> Parse(absl::string_view name, absl::string_view share);

  // `caller`: what the caller decided, if there is one. The same trace always gets the same answer,
  // in this server and in others that go by the lower half of its id, as Python's and Go's do.
  bool Samples(std::optional<bool> caller, uint64_t trace_low) const;

 private:
  uint64_t bound_;  // traces whose lower half is below it
  bool all_;
  bool follows_caller_;
};

}  // namespace attendant
