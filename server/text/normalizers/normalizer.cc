// SPDX-License-Identifier: Apache-2.0
#include "server/text/normalizers/normalizer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/text/base/aligned_text.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/part_table.h"
#include "server/text/normalizers/bert_normalizer.h"
#include "server/text/normalizers/normalizer_kinds.h"

namespace attendant {
namespace {

using NormalizerPtr = std::unique_ptr<Normalizer>;

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}

  void Append(absl::string_view text, size_t max_bytes, std::string& out) const override {
    std::string now(text);
    for (const NormalizerPtr& step : steps_) {
      out.clear();
      step->Append(now, max_bytes, out);
      std::swap(now, out);
      if (now.size() > max_bytes) break;
    }
    std::swap(now, out);
  }
  void Align(AlignedText& text) const override {
    for (const NormalizerPtr& step : steps_) {
      if (!text.is_full()) step->Align(text);
    }
  }
  Growth growth() const override { return GrowthOf(steps_); }
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

NormalizerPtr ReadNormalizerPart(const JsonFields& fields);

NormalizerPtr ReadNormalizers(const JsonFields& fields) {
  std::vector<NormalizerPtr> steps =
      ReadPartSequence<NormalizerPtr>(fields, "normalizers", ReadNormalizerPart);
  if (steps.size() == 1) return std::move(steps[0]);
  return std::make_unique<SequenceNormalizer>(std::move(steps));
}

constexpr PartKind<NormalizerPtr> kNormalizers[] = {
    {"BertNormalizer", ReadBertNormalizer},
    {"Lowercase", ReadLowercase},
    {"NFC", ReadNfc},
    {"NFD", ReadNfd},
    {"NFKC", ReadNfkc},
    {"NFKD", ReadNfkd},
    {"Precompiled", ReadPrecompiled},
    {"Prepend", ReadPrepend},
    {"Replace", ReadReplace},
    {"Sequence", ReadNormalizers},
    {"Strip", ReadStrip},
    {"StripAccents", ReadStripAccents},
};

NormalizerPtr ReadNormalizerPart(const JsonFields& fields) {
  return ReadPart<NormalizerPtr>(fields, "normalizer type", fields.String("type"), kNormalizers);
}

// Whether Lowercase before this normalizer would change nothing: it has the step, or is a
// BertNormalizer that does the same to every character.
bool Lowercases(const JsonFields& fields) {
  const std::string type = fields.String("type");
  if (type == "BertNormalizer") return fields.Bool("lowercase");
  if (type != "Sequence") return type == "Lowercase";
  const std::vector<JsonFields> steps = fields.Objects("normalizers");
  return std::any_of(steps.begin(), steps.end(),
                     [](const JsonFields& step) { return step.String("type") == "Lowercase"; });
}

NormalizerPtr LowercaseFirst(const JsonFields& file, NormalizerPtr normalizer) {
  if (normalizer == nullptr) return ReadLowercase(file);
  std::vector<NormalizerPtr> steps;
  steps.push_back(ReadLowercase(file));
  steps.push_back(std::move(normalizer));
  return std::make_unique<SequenceNormalizer>(std::move(steps));
}

}  // namespace

std::unique_ptr<Normalizer> ReadNormalizer(const JsonFields& file, bool lowercases,
                                           const std::optional<BertNormalizerConfig>& instead) {
  const bool has_own = !instead.has_value() && file.Has("normalizer");
  NormalizerPtr normalizer;
  if (instead.has_value()) normalizer = std::make_unique<BertNormalizer>(*instead);
  if (has_own) normalizer = ReadNormalizerPart(file.Object("normalizer"));
  if (lowercases && file.ok()) {
    const bool is_lower =
        has_own ? Lowercases(file.Object("normalizer")) : instead.has_value() && instead->lowercase;
    if (!is_lower) normalizer = LowercaseFirst(file, std::move(normalizer));
  }
  if (normalizer == nullptr) return nullptr;
  CheckGrowth(file, "normalizer", normalizer->growth(), kMaxNormalizedTimes);
  return normalizer;
}

}  // namespace attendant
