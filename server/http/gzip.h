// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Fast rather than small.
std::string Gzip(absl::string_view text);

// The inflated size that the end of a gzip member states. INVALID_ARGUMENT: it is no gzip member,
// or so short that it cannot inflate to so much.
absl::StatusOr<int64_t> GunzippedBytes(absl::string_view member);

// Inflates one member to exactly `bytes`, and takes no more memory than that. INVALID_ARGUMENT:
// it is damaged, has another size, or something follows it.
absl::StatusOr<std::string> Gunzip(absl::string_view member, int64_t bytes);

}  // namespace attendant
