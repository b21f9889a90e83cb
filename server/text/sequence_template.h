// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace attendant {

class JsonFields;

// A special token, or the place of a text's tokens.
struct TemplatePart {
  static constexpr int kSpecialToken = -1;

  int text = kSpecialToken;  // else 0 for the first text, 1 for the second
  int32_t id = 0;            // of a special token
  int32_t segment_id = 0;
};

// The parts of a sequence.
struct SequenceTemplate {
  std::vector<TemplatePart> single = {{.text = 0}};
  // Of two texts, each once. Empty: the file has no use for them.
  std::vector<TemplatePart> pair = {{.text = 0}, {.text = 1, .segment_id = 1}};
  // Each trims whitespace off the offsets of tokens, one after the other; the value: a space before
  // the text may have been added.
  std::vector<bool> trims;
};

// Reads the file's post_processor: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel
// (no special tokens), a Sequence of these, or null for no special tokens. Failures go to the
// file's status: UNIMPLEMENTED for another type.
SequenceTemplate ReadSequenceTemplate(const JsonFields& file, int64_t max_id);

}  // namespace attendant
