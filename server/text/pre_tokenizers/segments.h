// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "server/text/base/json_fields.h"
#include "server/text/pre_tokenizers/pre_tokenizer.h"

namespace attendant {

// The place of a separator after a text was cut at it: dropped, a piece of its own, or part of a
// neighbour.
enum class SeparatorBehavior {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

// "Removed", "Isolated", ... Failures go to the file's status.
SeparatorBehavior ReadSeparatorBehavior(const JsonFields& fields);

// Makes pieces of the segments of a text, separators and what stands between them, which come in
// order and without gaps.
class SegmentJoiner {
 public:
  SegmentJoiner(const Piece& piece, SeparatorBehavior behavior, PreTokenizer::Visitor visit)
      : piece_(piece), behavior_(behavior), visit_(visit) {}

  // The segment from where the last one ended to `end`; nothing when it is empty. False: no more
  // are needed.
  bool Add(size_t end, bool is_separator);
  // After the last segment.
  bool Finish() { return Visit(); }

 private:
  bool JoinsLast(bool is_separator) const;
  bool Visit();

  const Piece& piece_;
  SeparatorBehavior behavior_;
  PreTokenizer::Visitor visit_;
  size_t begin_ = 0;  // of the piece that is not complete yet
  size_t end_ = 0;
  bool last_is_separator_ = false;
};

}  // namespace attendant
