// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/form_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace attendant {
namespace {

using Edits = std::vector<std::pair<char32_t, int32_t>>;
using testing::ElementsAre;
using testing::Pair;

Edits EditsOf(NormalForm form, absl::string_view text) {
  Edits edits;
  for (const CharacterEdit& edit : NormalFormEdits(form, text, 4 * text.size())) {
    edits.emplace_back(edit.character, edit.change);
  }
  return edits;
}

TEST(FormEditsTest, PartsArePutInAndComposedOnesGo) {
  EXPECT_THAT(EditsOf(NormalForm::kNfd, "\u00e1b"),
              ElementsAre(Pair(U'a', 0), Pair(U'\u0301', 1), Pair(U'b', 0)));
  EXPECT_THAT(EditsOf(NormalForm::kNfc, "a\u0301b"),
              ElementsAre(Pair(U'\u00e1', -1), Pair(U'b', 0)));
}

TEST(FormEditsTest, AMarkOfTheSameClassBlocksTheNextOne) {
  // Above both, class 230: there is no character of `a` and the first mark.
  EXPECT_THAT(EditsOf(NormalForm::kNfc, "a\u030d\u0301"),
              ElementsAre(Pair(U'a', 0), Pair(U'\u030d', 0), Pair(U'\u0301', 0)));
  // The first one is below, class 220.
  EXPECT_THAT(EditsOf(NormalForm::kNfc, "a\u0316\u0301"),
              ElementsAre(Pair(U'\u00e1', -1), Pair(U'\u0316', 0)));
}

}  // namespace
}  // namespace attendant
