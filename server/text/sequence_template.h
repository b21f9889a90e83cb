// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace attendant {

class JsonFields;

struct SpecialToken {
  int32_t id = 0;
  int32_t segment_id = 0;
};

// The parts of a sequence: special tokens, the text's tokens, special tokens.
struct SequenceTemplate {
  std::vector<SpecialToken> before;
  int32_t text_segment_id = 0;
  std::vector<SpecialToken> after;
};

// Reads the file's post_processor: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel
// (no special tokens), a Sequence of these, or null for no special tokens. Failures go to the
// file's status: UNIMPLEMENTED for another type.
SequenceTemplate ReadSequenceTemplate(const JsonFields& file, int64_t max_id);

}  // namespace attendant
