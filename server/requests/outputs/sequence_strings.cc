// SPDX-License-Identifier: Apache-2.0
#include "server/requests/outputs/sequence_strings.h"

#include "absl/strings/string_view.h"
#include "server/text/tokenizer.h"

namespace attendant {
namespace {

// The memory of a short string.
constexpr int64_t kStringBytes = 40;

// Empty for an id that has no token, as for all of a model that takes ids alone.
absl::string_view StringOf(const EncoderModel& model, int32_t id) {
  return model.tokenizer == nullptr ? absl::string_view() : model.tokenizer->TokenString(id);
}

}  // namespace

int64_t CountStringBytes(const EncoderModel& model, const EncodeOutput& output,
                         const EncodedSequence& sequence) {
  if (!output.token_strings) return 0;
  int64_t bytes = 0;
  for (const int32_t id : sequence.token_ids) {
    bytes += kStringBytes + static_cast<int64_t>(StringOf(model, id).size());
  }
  return bytes;
}

void FillStrings(const EncoderModel& model, EncodeOutput& output) {
  if (!output.token_strings) return;
  for (EncodedSequence& sequence : output.sequences) {
    sequence.token_strings.reserve(sequence.token_ids.size());
    for (const int32_t id : sequence.token_ids) {
      sequence.token_strings.emplace_back(StringOf(model, id));
    }
  }
}

}  // namespace attendant
