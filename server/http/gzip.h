// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Fast rather than small.
std::string Gzip(absl::string_view text);

// A gzip text is one member or several (RFC 1952, 2.2).
//
// The inflated size of a gzip text: what the end of its only member states, or what several members
// inflate to. These are counted, without memory for them, until there are more than `most`: then
// the size is a lower bound. INVALID_ARGUMENT: it is no gzip, or so short that it cannot inflate to
// so much.
absl::StatusOr<int64_t> GunzippedBytes(absl::string_view gzip,
                                       int64_t most = std::numeric_limits<int64_t>::max());

// Inflates a gzip text to exactly `bytes`, and takes no more memory than that. INVALID_ARGUMENT:
// it is damaged, has another size, or something follows it.
absl::StatusOr<std::string> Gunzip(absl::string_view gzip, int64_t bytes);

}  // namespace attendant
