// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "server/text/base/pattern_field.h"
#include "server/text/pre_tokenizers/pre_tokenizer_kinds.h"
#include "server/text/pre_tokenizers/segments.h"
#include "server/text/unicode/pattern.h"

namespace attendant {
namespace {

class SplitPreTokenizer final : public PreTokenizer {
 public:
  SplitPreTokenizer(Pattern pattern, SeparatorBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  bool Split(const Piece& piece, Visitor visit) const override {
    SegmentJoiner segments(piece, behavior_, visit);
    Pattern::Matcher matcher(pattern_, piece.text);
    for (size_t done = 0; done < piece.text.size();) {
      const Pattern::Match match = matcher.Find(done);
      if (!segments.Add(match.begin, invert_) || !segments.Add(match.end, !invert_)) return false;
      done = match.end;
    }
    return segments.Finish();
  }
  bool parts_characters(bool normalized) const override { return normalized; }

 private:
  Pattern pattern_;
  SeparatorBehavior behavior_;
  bool invert_;  // what the pattern does not match is the separator
};

}  // namespace

std::unique_ptr<PreTokenizer> ReadSplit(const JsonFields& fields) {
  std::optional<Pattern> pattern = ReadPattern(fields);
  const SeparatorBehavior behavior = ReadSeparatorBehavior(fields);
  const bool invert = fields.Bool("invert");
  if (!fields.ok()) return nullptr;
  return std::make_unique<SplitPreTokenizer>(*std::move(pattern), behavior, invert);
}

}  // namespace attendant
