// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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

// A step that takes whitespace off the offsets of tokens, except for one space of the first token:
// the pre-tokenizer may have put it there.
struct OffsetTrim {
  bool add_prefix_space = true;  // the exception is made
  // Of each text: its own first token counts. Else a special token is the first, and only a token
  // that begins where the text does is excepted.
  std::array<bool, 2> starts_with_text = {true, true};
};

// The parts of a sequence.
struct SequenceTemplate {
  std::vector<TemplatePart> single = {{.text = 0}};
  // Of two texts, each once. Empty: the file has no use for them.
  std::vector<TemplatePart> pair = {{.text = 0}, {.text = 1, .segment_id = 1}};
  std::vector<OffsetTrim> trims;  // one after the other
  // Of each text: the next step of the library gets a special token before it in the same list.
  std::array<bool, 2> special_first = {false, false};
};

// [CLS] A [SEP] B [SEP], the second text and its end in segment 1.
SequenceTemplate MakeBertTemplate(const TemplatePart& cls, const TemplatePart& sep);
// <s> A </s> </s> B </s>, all in segment 0.
SequenceTemplate MakeRobertaTemplate(const TemplatePart& cls, const TemplatePart& sep);

// Reads the file's post_processor: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel
// (no special tokens), a Sequence of these, or null for no special tokens. Failures go to the
// file's status: UNIMPLEMENTED for another type.
SequenceTemplate ReadSequenceTemplate(const JsonFields& file, int64_t max_id);

}  // namespace attendant
