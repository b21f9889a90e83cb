// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "server/text/base/aligned_text.h"
#include "server/text/normalizers/normalizer_kinds.h"
#include "server/text/unicode/form_edits.h"
#include "server/text/unicode/normal_form.h"

namespace attendant {
namespace {

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(NormalForm form) : form_(form) {}

  void Append(absl::string_view text, size_t max_bytes, std::string& out) const override {
    AppendNormalForm(form_, text, max_bytes, out);
  }
  void Align(AlignedText& text) const override {
    text.Apply(NormalFormEdits(form_, text.text(), text.max_bytes()));
  }
  Growth growth() const override {
    const bool compatible = form_ == NormalForm::kNfkc || form_ == NormalForm::kNfkd;
    return {.times = compatible ? 11.0 : 3.0};
  }
  // NFD makes "=" and a stroke of one character, which Punctuation cuts apart.
  bool keeps_start() const override { return form_ == NormalForm::kNfc; }

 private:
  NormalForm form_;
};

}  // namespace

std::unique_ptr<Normalizer> ReadNfc(const JsonFields&) {
  return std::make_unique<UnicodeForm>(NormalForm::kNfc);
}
std::unique_ptr<Normalizer> ReadNfd(const JsonFields&) {
  return std::make_unique<UnicodeForm>(NormalForm::kNfd);
}
std::unique_ptr<Normalizer> ReadNfkc(const JsonFields&) {
  return std::make_unique<UnicodeForm>(NormalForm::kNfkc);
}
std::unique_ptr<Normalizer> ReadNfkd(const JsonFields&) {
  return std::make_unique<UnicodeForm>(NormalForm::kNfkd);
}

}  // namespace attendant
