// SPDX-License-Identifier: Apache-2.0
#include "server/text/normalizers/normalizer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/text/base/json_fields.h"
#include "server/text/base/part_table.h"
#include "server/text/normalizers/normalizer_kinds.h"

namespace attendant {
namespace {

using NormalizerPtr = std::unique_ptr<Normalizer>;

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}

  void Append(absl::string_view text, std::string& out) const override {
    std::string now(text);
    std::string next;
    for (const NormalizerPtr& step : steps_) {
      next.clear();
      step->Append(now, next);
      std::swap(now, next);
    }
    out.append(now);
  }
  void Align(AlignedText& text) const override {
    for (const NormalizerPtr& step : steps_) step->Align(text);
  }
  bool cuts_at_spaces() const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->cuts_at_spaces(); });
  }
  bool keeps_start() const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->keeps_start(); });
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

NormalizerPtr ReadAny(const JsonFields& fields);

NormalizerPtr ReadSequence(const JsonFields& fields) {
  std::vector<NormalizerPtr> steps =
      ReadPartSequence<NormalizerPtr>(fields, "normalizers", ReadAny);
  if (steps.size() == 1) return std::move(steps[0]);
  return std::make_unique<SequenceNormalizer>(std::move(steps));
}

constexpr PartKind<NormalizerPtr> kKinds[] = {
    {"BertNormalizer", ReadBertNormalizer},
    {"Lowercase", ReadLowercase},
    {"NFC", ReadNfc},
    {"NFD", ReadNfd},
    {"NFKC", ReadNfkc},
    {"NFKD", ReadNfkd},
    {"Precompiled", ReadPrecompiled},
    {"Prepend", ReadPrepend},
    {"Replace", ReadReplace},
    {"Sequence", ReadSequence},
    {"Strip", ReadStrip},
};

NormalizerPtr ReadAny(const JsonFields& fields) {
  return ReadPart<NormalizerPtr>(fields, "normalizer type", fields.String("type"), kKinds);
}

}  // namespace

std::unique_ptr<Normalizer> ReadNormalizer(const JsonFields& file) {
  return file.Has("normalizer") ? ReadAny(file.Object("normalizer")) : nullptr;
}

}  // namespace attendant
