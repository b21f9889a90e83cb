// SPDX-License-Identifier: Apache-2.0
#include "server/text/pre_tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "server/text/base/json_fields.h"
#include "server/text/base/part_table.h"
#include "server/text/pre_tokenizers/pre_tokenizer_kinds.h"

namespace attendant {
namespace {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

class SequencePreTokenizer final : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}

  bool Split(const Piece& piece, Visitor visit) const override { return Split(0, piece, visit); }
  bool cuts_at_spaces() const override {
    return !steps_.empty() && steps_.front()->cuts_at_spaces();
  }
  bool needs_start() const override {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->needs_start(); });
  }
  bool parts_characters(bool normalized) const override {
    return std::any_of(steps_.begin(), steps_.end(),
                       [=](const auto& step) { return step->parts_characters(normalized); });
  }
  bool loses_start(bool normalized) const override {
    bool parted = false;
    for (const PreTokenizerPtr& step : steps_) {
      if (step->loses_start(normalized) || (parted && step->needs_start())) return true;
      parted = parted || step->parts_characters(normalized);
    }
    return false;
  }
  Growth growth() const override { return GrowthOf(steps_); }

 private:
  bool Split(size_t step, const Piece& piece, Visitor visit) const {
    if (step == steps_.size()) return visit(piece);
    return steps_[step]->Split(
        piece, [&](const Piece& smaller) { return Split(step + 1, smaller, visit); });
  }

  std::vector<PreTokenizerPtr> steps_;
};

PreTokenizerPtr ReadPreTokenizerPart(const JsonFields& fields);

PreTokenizerPtr ReadPreTokenizers(const JsonFields& fields) {
  return std::make_unique<SequencePreTokenizer>(
      ReadPartSequence<PreTokenizerPtr>(fields, "pretokenizers", ReadPreTokenizerPart));
}

constexpr PartKind<PreTokenizerPtr> kPreTokenizers[] = {
    {"BertPreTokenizer", ReadBertPreTokenizer},
    {"ByteLevel", ReadByteLevel},
    {"Digits", ReadDigits},
    {"Metaspace", ReadMetaspace},
    {"Punctuation", ReadPunctuation},
    {"Sequence", ReadPreTokenizers},
    {"Split", ReadSplit},
    {"WhitespaceSplit", ReadWhitespaceSplit},
};

PreTokenizerPtr ReadPreTokenizerPart(const JsonFields& fields) {
  return ReadPart<PreTokenizerPtr>(fields, "pre_tokenizer type", fields.String("type"),
                                   kPreTokenizers);
}

}  // namespace

std::unique_ptr<PreTokenizer> ReadPreTokenizer(const JsonFields& file) {
  if (!file.Has("pre_tokenizer")) return nullptr;
  PreTokenizerPtr pre_tokenizer = ReadPreTokenizerPart(file.Object("pre_tokenizer"));
  if (pre_tokenizer != nullptr) {
    CheckGrowth(file, "pre_tokenizer", pre_tokenizer->growth(), kMaxPieceTimes);
  }
  return pre_tokenizer;
}

}  // namespace attendant
