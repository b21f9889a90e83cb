// SPDX-License-Identifier: Apache-2.0
#include "server/text/sequence_template.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/unicode/readable.h"

namespace attendant {
namespace {

// Of a template: each id of a special token is one, each time that a piece names the token.
constexpr size_t kMaxTemplateParts = 4096;

int32_t ReadSegmentId(const JsonFields& piece) {
  constexpr int64_t kMaxSegmentId = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(piece.Integer("type_id", kMaxSegmentId));
}

// `table` says which ids the piece's name stands for: {"[CLS]": {"id": "[CLS]", "ids": [101]}}
void ReadSpecialToken(const JsonFields& piece, const JsonFields& table, int64_t max_id,
                      std::vector<TemplatePart>& parts) {
  const std::string name = piece.String("id");
  const int32_t segment_id = ReadSegmentId(piece);
  if (!piece.ok()) return;
  const JsonFields special = table.Object(name);
  for (const int64_t id : special.Integers("ids", max_id)) {
    if (parts.size() > kMaxTemplateParts) return;  // ReadParts says so
    parts.push_back({.id = static_cast<int32_t>(id), .segment_id = segment_id});
  }
}

// `texts` are the names that the template may use, one letter each: "AB".
TemplatePart ReadText(const JsonFields& text, absl::string_view texts) {
  const std::string name = text.String("id");
  const size_t index = name.size() == 1 ? texts.find(name[0]) : absl::string_view::npos;
  if (index == absl::string_view::npos) {
    text.Fail("id", texts.size() == 1 ? "is not 'A'" : "is neither 'A' nor 'B'");
    return {};
  }
  return {.text = static_cast<int>(index), .segment_id = ReadSegmentId(text)};
}

std::vector<TemplatePart> ReadParts(const JsonFields& fields, const char* key,
                                    absl::string_view texts, int64_t max_id) {
  std::vector<TemplatePart> parts;
  const JsonFields table = fields.Object("special_tokens");
  for (const JsonFields& piece : fields.Objects(key)) {
    if (!fields.ok()) break;
    if (piece.Has("SpecialToken")) {
      ReadSpecialToken(piece.Object("SpecialToken"), table, max_id, parts);
    } else {
      parts.push_back(ReadText(piece.Object("Sequence"), texts));
    }
    if (parts.size() <= kMaxTemplateParts) continue;
    fields.Fail(key,
                absl::StrCat("makes more than ", kMaxTemplateParts, " tokens, which is the limit"));
    break;
  }
  return parts;
}

int64_t CountText(const std::vector<TemplatePart>& parts, int text) {
  return std::count_if(parts.begin(), parts.end(),
                       [text](const TemplatePart& part) { return part.text == text; });
}

SequenceTemplate ReadTemplate(const JsonFields& fields, int64_t max_id) {
  SequenceTemplate sequence{
      .single = ReadParts(fields, "single", "A", max_id), .pair = {}, .trims = {}};
  const int64_t num_texts = CountText(sequence.single, 0);
  if (num_texts != 1) {
    fields.Fail(absl::UnimplementedError(
        absl::StrCat(fields.PathOf("single"), " has the text ", num_texts,
                     " times; a template with the text exactly once is supported")));
  }
  if (fields.Has("pair")) sequence.pair = ReadParts(fields, "pair", "AB", max_id);
  if (CountText(sequence.pair, 0) != 1 || CountText(sequence.pair, 1) != 1) sequence.pair.clear();
  return sequence;
}

// {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
struct ClsAndSep {
  TemplatePart cls, sep;
};

ClsAndSep ReadClsAndSep(const JsonFields& fields, int64_t max_id) {
  const auto read = [&](const std::string& key) {
    return TemplatePart{.id = static_cast<int32_t>(fields.Integer(key, size_t{1}, max_id))};
  };
  return {read("cls"), read("sep")};
}

SequenceTemplate ReadBert(const JsonFields& fields, int64_t max_id) {
  const auto [cls, sep] = ReadClsAndSep(fields, max_id);
  return MakeBertTemplate(cls, sep);
}

// Of a ByteLevel or RobertaProcessing.
std::vector<OffsetTrim> ReadTrims(const JsonFields& fields) {
  const auto is = [&](absl::string_view key) { return !fields.Has(key) || fields.Bool(key); };
  if (!is("trim_offsets")) return {};
  return {{.add_prefix_space = is("add_prefix_space")}};
}

SequenceTemplate ReadRoberta(const JsonFields& fields, int64_t max_id) {
  const auto [cls, sep] = ReadClsAndSep(fields, max_id);
  SequenceTemplate sequence = MakeRobertaTemplate(cls, sep);
  sequence.trims = ReadTrims(fields);
  return sequence;
}

SequenceTemplate ReadAny(const JsonFields& fields, int64_t max_id);

// Parts that make no tokens, and one that does.
SequenceTemplate ReadSequence(const JsonFields& fields, int64_t max_id) {
  SequenceTemplate sequence;
  std::vector<OffsetTrim> trims;
  std::array<bool, 2> special_first = {false, false};
  int num_templates = 0;
  for (const JsonFields& part : fields.Objects("processors")) {
    if (!fields.ok()) break;
    SequenceTemplate read = ReadAny(part, max_id);
    for (OffsetTrim trim : read.trims) {
      for (size_t i = 0; i < special_first.size(); ++i) {
        trim.starts_with_text[i] = trim.starts_with_text[i] && !special_first[i];
      }
      trims.push_back(trim);
    }
    if (read.special_first[0]) special_first = read.special_first;
    if (part.String("type") == "ByteLevel") continue;
    sequence = std::move(read);
    ++num_templates;
  }
  sequence.trims = std::move(trims);
  sequence.special_first = special_first;
  if (num_templates > 1) {
    fields.Fail(absl::UnimplementedError(absl::StrCat(
        fields.PathOf("processors"), " has ", num_templates, " that add tokens; 1 is supported")));
  }
  return sequence;
}

SequenceTemplate ReadAny(const JsonFields& fields, int64_t max_id) {
  const std::string type = fields.String("type");
  if (type == "TemplateProcessing") return ReadTemplate(fields, max_id);
  if (type == "BertProcessing") return ReadBert(fields, max_id);
  if (type == "RobertaProcessing") return ReadRoberta(fields, max_id);
  if (type == "Sequence") return ReadSequence(fields, max_id);
  SequenceTemplate sequence;
  if (type == "ByteLevel") {
    sequence.trims = ReadTrims(fields);
    return sequence;
  }
  fields.Fail(absl::UnimplementedError(
      absl::StrCat(fields.PathOf("type"), " ", ReadableName(type),
                   " is not supported; supported: BertProcessing, ByteLevel, "
                   "RobertaProcessing, Sequence, TemplateProcessing")));
  return sequence;
}

}  // namespace

SequenceTemplate MakeBertTemplate(const TemplatePart& cls, const TemplatePart& sep) {
  TemplatePart last = sep;
  last.segment_id = 1;
  return {.single = {cls, {.text = 0}, sep},
          .pair = {cls, {.text = 0}, sep, {.text = 1, .segment_id = 1}, last},
          .trims = {},
          .special_first = {true, false}};
}

SequenceTemplate MakeRobertaTemplate(const TemplatePart& cls, const TemplatePart& sep) {
  return {.single = {cls, {.text = 0}, sep},
          .pair = {cls, {.text = 0}, sep, sep, {.text = 1}, sep},
          .trims = {},
          .special_first = {true, true}};
}

SequenceTemplate ReadSequenceTemplate(const JsonFields& file, int64_t max_id) {
  return file.Has("post_processor") ? ReadAny(file.Object("post_processor"), max_id)
                                    : SequenceTemplate();
}

}  // namespace attendant
