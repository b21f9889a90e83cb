// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/form_edits.h"

#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr int kFormVersion = 9;  // as AppendNormalForm

// Both tables are compiled into ICU: getting them cannot fail.
const icu::Normalizer2& CanonicalTable() {
  UErrorCode error = U_ZERO_ERROR;
  static const icu::Normalizer2& table = *icu::Normalizer2::getNFCInstance(error);
  return table;
}

const icu::Normalizer2& CompatibilityTable() {
  UErrorCode error = U_ZERO_ERROR;
  static const icu::Normalizer2& table = *icu::Normalizer2::getNFKCInstance(error);
  return table;
}

// Decomposes characters, sorts marks, and composes again where the form says so.
class FormEditor {
 public:
  FormEditor(NormalForm form, size_t text_bytes)
      : composes_(form == NormalForm::kNfc || form == NormalForm::kNfkc),
        table_(form == NormalForm::kNfkc || form == NormalForm::kNfkd ? CompatibilityTable()
                                                                      : CanonicalTable()) {
    edits_.reserve(text_bytes);
  }

  void Add(char32_t character) {
    icu::UnicodeString parts;
    if (!IsAssigned(character, kFormVersion) ||
        !table_.getDecomposition(static_cast<UChar32>(character), parts)) {
      return AddPart({character, 0});
    }
    for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
      AddPart({static_cast<char32_t>(parts.char32At(i)), i > 0 ? 1 : 0});
    }
  }

  size_t size() const { return edits_.size() + marks_.size(); }

  std::vector<CharacterEdit> Take() {
    FlushMarks();
    return std::move(edits_);
  }

 private:
  struct Part {
    CharacterEdit edit;
    uint8_t combining_class;
  };

  // Marks wait for the next starter, which ends their order.
  void AddPart(CharacterEdit edit) {
    const uint8_t combining_class = CombiningClass(edit.character);
    if (combining_class == 0) FlushMarks();
    marks_.push_back({edit, combining_class});
  }

  void FlushMarks() {
    std::stable_sort(marks_.begin(), marks_.end(), [](const Part& left, const Part& right) {
      return left.combining_class < right.combining_class;
    });
    for (const Part& part : marks_) {
      if (!composes_ || !Compose(part)) edits_.push_back(part.edit);
    }
    marks_.clear();
  }

  // Whether `part` went into the last starter. A mark between them of its class or above blocks it.
  bool Compose(const Part& part) {
    const bool blocked = last_class_.has_value() && *last_class_ >= part.combining_class;
    if (starter_.has_value() && !blocked) {
      CharacterEdit& starter = edits_[*starter_];
      const UChar32 composite = CanonicalTable().composePair(
          static_cast<UChar32>(starter.character), static_cast<UChar32>(part.edit.character));
      if (composite >= 0 && IsAssigned(static_cast<char32_t>(composite), kFormVersion)) {
        starter = {static_cast<char32_t>(composite), starter.change + part.edit.change - 1};
        return true;
      }
    }
    if (part.combining_class == 0) {
      starter_ = edits_.size();
      last_class_.reset();
    } else if (starter_.has_value()) {
      last_class_ = part.combining_class;
    }
    return false;
  }

  bool composes_;
  const icu::Normalizer2& table_;
  std::vector<Part> marks_;
  std::vector<CharacterEdit> edits_;
  std::optional<size_t> starter_;      // the last one in edits_
  std::optional<uint8_t> last_class_;  // of the marks after it
};

}  // namespace

std::vector<CharacterEdit> NormalFormEdits(NormalForm form, absl::string_view text,
                                           size_t max_edits) {
  FormEditor editor(form, text.size());
  const char* const end = text.data() + text.size();
  for (const char* position = text.data(); position < end && editor.size() <= max_edits;) {
    editor.Add(NextCharacter(position));
  }
  return editor.Take();
}

}  // namespace attendant
