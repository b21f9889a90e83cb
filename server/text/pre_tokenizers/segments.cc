// SPDX-License-Identifier: Apache-2.0
#include "server/text/pre_tokenizers/segments.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/text/unicode/readable.h"

namespace attendant {

SeparatorBehavior ReadSeparatorBehavior(const JsonFields& fields) {
  const std::string name = fields.String("behavior");
  if (name == "Removed") return SeparatorBehavior::kRemoved;
  if (name == "Isolated") return SeparatorBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SeparatorBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SeparatorBehavior::kMergedWithNext;
  if (name == "Contiguous") return SeparatorBehavior::kContiguous;
  if (fields.ok()) {
    fields.Fail(absl::UnimplementedError(
        absl::StrCat(fields.PathOf("behavior"), " ", ReadableName(name), " is not supported")));
  }
  return SeparatorBehavior::kRemoved;
}

bool SegmentJoiner::Add(size_t end, bool is_separator) {
  if (end == end_) return true;
  if (!JoinsLast(is_separator) && !Visit()) return false;
  last_is_separator_ = is_separator;
  end_ = end;
  if (is_separator && behavior_ == SeparatorBehavior::kRemoved) begin_ = end_;
  return true;
}

bool SegmentJoiner::JoinsLast(bool is_separator) const {
  switch (behavior_) {
    case SeparatorBehavior::kMergedWithPrevious:
      return is_separator && !last_is_separator_;
    case SeparatorBehavior::kMergedWithNext:
      return !is_separator && last_is_separator_;
    case SeparatorBehavior::kContiguous:
      return is_separator == last_is_separator_;
    default:
      return false;
  }
}

bool SegmentJoiner::Visit() {
  if (begin_ == end_) return true;
  const Piece whole = piece_.Part(begin_, end_);
  begin_ = end_;
  return visit_(whole);
}

}  // namespace attendant
