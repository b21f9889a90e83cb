// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/normal_form.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace attendant {
namespace {

constexpr NormalForm kForms[] = {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc,
                                 NormalForm::kNfkd};

std::string Normalized(NormalForm form, const std::string& text) {
  std::string normalized;
  AppendNormalForm(form, text, normalized.max_size(), normalized);
  return normalized;
}

std::string Repeat(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

// Of the classes 240, 230, 220 and 1.
constexpr const char* kMarks[] = {"\u0345", "\u0301", "\u0323", "\u0334"};

std::string SortedMarks(size_t times) {
  return Repeat(kMarks[3], times) + Repeat(kMarks[2], times) + Repeat(kMarks[1], times) +
         Repeat(kMarks[0], times);
}

std::string MixedMarks(size_t times) {
  return Repeat(std::string(kMarks[0]) + kMarks[1] + kMarks[2] + kMarks[3], times);
}

// Few marks and many go different ways.
TEST(NormalFormTest, AnyNumberOfMarksIsSorted) {
  for (size_t times = 0; times < 40; ++times) {
    for (const std::string before : {"x", "a long text that has no marks at all but one \u00e9x"}) {
      const std::string text = before + MixedMarks(times) + "\uFB01";
      for (const NormalForm form : {NormalForm::kNfd, NormalForm::kNfkd}) {
        const std::string end = form == NormalForm::kNfd ? "\uFB01" : "fi";
        const std::string start = before == "x" ? before : Normalized(form, before);
        EXPECT_EQ(Normalized(form, text), start + SortedMarks(times) + end) << times;
      }
    }
    // The first ones of two classes compose with the letter.
    const std::string composed =
        times == 0 ? "a"
                   : "\u1EA1" + Repeat(kMarks[3], times) + Repeat(kMarks[2], times - 1) +
                         Repeat(kMarks[1], times) + Repeat(kMarks[0], times);
    EXPECT_EQ(Normalized(NormalForm::kNfc, "a" + MixedMarks(times)), composed) << times;
  }
}

// Each would take minutes if it were quadratic; the test's time limit is the judge.
TEST(NormalFormTest, MarksTakeLinearTime) {
  constexpr size_t kTimes = 1 << 17;
  const std::string text = "x" + MixedMarks(kTimes);
  // A starter of which two marks come.
  const std::string tibetan = Repeat("\u0F73", kTimes);
  for (const NormalForm form : kForms) {
    EXPECT_EQ(Normalized(form, text), "x" + SortedMarks(kTimes));
    EXPECT_EQ(Normalized(form, tibetan), Repeat("\u0F71", kTimes) + Repeat("\u0F72", kTimes));
    // Behind a text that has none, and between letters.
    EXPECT_EQ(Normalized(form, Repeat("abc ", kTimes) + text).size(), 4 * kTimes + text.size());
    EXPECT_EQ(Normalized(form, Repeat("x" + MixedMarks(15), kTimes / 16)),
              Repeat("x" + SortedMarks(15), kTimes / 16));
  }
}

}  // namespace
}  // namespace attendant
