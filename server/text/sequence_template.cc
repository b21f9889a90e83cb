// SPDX-License-Identifier: Apache-2.0
#include "server/text/sequence_template.h"

#include <cstddef>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/json_fields.h"

namespace attendant {
namespace {

int32_t ReadSegmentId(const JsonFields& piece) {
  constexpr int64_t kMaxSegmentId = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(piece.Integer("type_id", kMaxSegmentId));
}

// `table` says which ids the piece's name stands for: {"[CLS]": {"id": "[CLS]", "ids": [101]}}
void ReadSpecialToken(const JsonFields& piece, const JsonFields& table, int64_t max_id,
                      std::vector<SpecialToken>& specials) {
  const std::string name = piece.String("id");
  const int32_t segment_id = ReadSegmentId(piece);
  if (!piece.ok()) return;
  const JsonFields special = table.Object(name);
  for (const int64_t id : special.Integers("ids", max_id)) {
    specials.push_back({static_cast<int32_t>(id), segment_id});
  }
}

SequenceTemplate ReadTemplate(const JsonFields& fields, int64_t max_id) {
  SequenceTemplate sequence;
  const JsonFields table = fields.Object("special_tokens");
  int num_texts = 0;
  for (const JsonFields& piece : fields.Objects("single")) {
    if (!fields.ok()) break;
    if (piece.Has("SpecialToken")) {
      ReadSpecialToken(piece.Object("SpecialToken"), table, max_id,
                       num_texts == 0 ? sequence.before : sequence.after);
      continue;
    }
    const JsonFields text = piece.Object("Sequence");
    if (text.String("id") != "A") text.Fail("id", "is not 'A'");
    sequence.text_segment_id = ReadSegmentId(text);
    ++num_texts;
  }
  if (num_texts != 1) {
    fields.Fail(absl::UnimplementedError(
        absl::StrCat(fields.PathOf("single"), " has the text ", num_texts,
                     " times; a template with the text exactly once is supported")));
  }
  return sequence;
}

// BertProcessing and RobertaProcessing:
// {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
SequenceTemplate ReadClsAndSep(const JsonFields& fields, int64_t max_id) {
  const auto read = [&](const std::string& key) {
    return SpecialToken{static_cast<int32_t>(fields.Integer(key, size_t{1}, max_id)), 0};
  };
  return {.before = {read("cls")}, .text_segment_id = 0, .after = {read("sep")}};
}

SequenceTemplate ReadAny(const JsonFields& fields, int64_t max_id);

// Parts that make no tokens, and one that does.
SequenceTemplate ReadSequence(const JsonFields& fields, int64_t max_id) {
  SequenceTemplate sequence;
  int num_templates = 0;
  for (const JsonFields& part : fields.Objects("processors")) {
    if (!fields.ok()) break;
    if (part.String("type") == "ByteLevel") continue;
    sequence = ReadAny(part, max_id);
    ++num_templates;
  }
  if (num_templates > 1) {
    fields.Fail(absl::UnimplementedError(absl::StrCat(
        fields.PathOf("processors"), " has ", num_templates, " that add tokens; 1 is supported")));
  }
  return sequence;
}

// ByteLevel changes offsets only.
SequenceTemplate ReadAny(const JsonFields& fields, int64_t max_id) {
  const std::string type = fields.String("type");
  if (type == "TemplateProcessing") return ReadTemplate(fields, max_id);
  if (type == "BertProcessing" || type == "RobertaProcessing") return ReadClsAndSep(fields, max_id);
  if (type == "Sequence") return ReadSequence(fields, max_id);
  if (type != "ByteLevel") {
    fields.Fail(absl::UnimplementedError(
        absl::StrCat(fields.PathOf("type"), " '", type,
                     "' is not supported; supported: BertProcessing, ByteLevel, "
                     "RobertaProcessing, Sequence, TemplateProcessing")));
  }
  return {};
}

}  // namespace

SequenceTemplate ReadSequenceTemplate(const JsonFields& file, int64_t max_id) {
  return file.Has("post_processor") ? ReadAny(file.Object("post_processor"), max_id)
                                    : SequenceTemplate();
}

}  // namespace attendant
