// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"

namespace attendant {

// A bound on how a part of a tokenizer.json changes the length of a text.
struct Growth {
  double times = 1;   // at most so many bytes for each byte of a text that is not empty, at least 1
  int64_t steps = 1;  // that are taken one after the other
};

// The growth of `parts` applied one after the other. `parts` are pointers to objects with a
// growth().
template <typename Part>
Growth GrowthOf(const std::vector<Part>& parts) {
  Growth all{.times = 1, .steps = 0};
  for (const Part& part : parts) {
    const Growth growth = part->growth();
    all.times *= growth.times;
    all.steps += growth.steps;
  }
  return all;
}

// A failure in the file's status, naming `part`, for more steps than a sequence may have, or when
// they make a text more than `max_times` as long.
void CheckGrowth(const JsonFields& file, absl::string_view part, const Growth& growth,
                 double max_times);

// The bound for a normalized text. Real normalizers stay below 34: NFKC makes 11 times the bytes of
// U+FDFA, and "▁" for each space 3 times.
inline constexpr double kMaxNormalizedTimes = 256;
// The bound for one piece. Real pre-tokenizers have 6: Metaspace puts "▁" in front, and in place of
// spaces.
inline constexpr double kMaxPieceTimes = 16;
// Real decoders have 2: WordPiece puts a space before each token.
inline constexpr double kMaxDecodedTimes = 4;

// A text of `bytes` has at most so many when it is normalized. Hangul becomes three times as long
// in NFD, and so do spaces that "▁" stands for; what grows more is rare in a long text.
inline constexpr size_t MaxNormalizedBytes(size_t bytes) { return 3 * bytes + (size_t{64} << 10); }

}  // namespace attendant
