// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/repository_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant {
namespace {

using Strings = std::vector<std::string>;

// What the repository holds from a second on, and what is to be done then. The settle time is 3 s.
struct Step {
  int second;
  RepositoryChanges::Fingerprints found;
  Strings load;
  Strings unload;
};

struct ChangesCase {
  const char* name;
  RepositoryChanges::Fingerprints loaded;
  std::vector<Step> steps;
};

class RepositoryChangesTest : public testing::TestWithParam<ChangesCase> {};

TEST_P(RepositoryChangesTest, EachStateIsHandledOnceItHasSettled) {
  RepositoryChanges changes(absl::Seconds(3), GetParam().loaded);
  for (const Step& step : GetParam().steps) {
    const auto found = changes.Update(step.found, absl::UnixEpoch() + absl::Seconds(step.second));
    EXPECT_EQ(found.load, step.load) << "at " << step.second << " s";
    EXPECT_EQ(found.unload, step.unload) << "at " << step.second << " s";
  }
}

const ChangesCase kCases[] = {
    {"WhatIsLoadedStays", {{"m", "1"}}, {{0, {{"m", "1"}}, {}, {}}, {9, {{"m", "1"}}, {}, {}}}},
    {"ANewModelIsLoadedOnce",
     {},
     {{0, {{"m", "1"}}, {}, {}},
      {2, {{"m", "1"}}, {}, {}},
      {3, {{"m", "1"}}, {"m"}, {}},
      {9, {{"m", "1"}}, {}, {}}}},
    {"ACopyThatGrowsIsLoadedWhenItHasEnded",
     {},
     {{0, {{"m", "1"}}, {}, {}},
      {2, {{"m", "2"}}, {}, {}},
      {4, {{"m", "3"}}, {}, {}},
      {6, {{"m", "3"}}, {}, {}},
      {7, {{"m", "3"}}, {"m"}, {}}}},
    {"AChangeIsLoaded",
     {{"m", "1"}},
     {{0, {{"m", "2"}}, {}, {}}, {3, {{"m", "2"}}, {"m"}, {}}, {6, {{"m", "2"}}, {}, {}}}},
    {"AFailureIsTriedAgainWhenTheFilesChange",
     {},
     {{0, {{"m", "broken"}}, {}, {}},
      {3, {{"m", "broken"}}, {"m"}, {}},
      {20, {{"m", "broken"}}, {}, {}},
      {21, {{"m", "mended"}}, {}, {}},
      {24, {{"m", "mended"}}, {"m"}, {}}}},
    {"AModelThatIsGoneIsUnloadedOnce",
     {{"m", "1"}},
     {{0, {}, {}, {}}, {3, {}, {}, {"m"}}, {9, {}, {}, {}}}},
    {"AModelThatComesBackInTimeIsLoadedAnewOnlyIfItDiffers",
     {{"same", "1"}, {"other", "1"}},
     {{0, {}, {}, {}},
      {2, {{"same", "1"}, {"other", "2"}}, {}, {}},
      {5, {{"same", "1"}, {"other", "2"}}, {"other"}, {}}}},
    {"AModelThatComesAndGoesIsNeverLoaded",
     {},
     {{0, {{"m", "1"}}, {}, {}}, {2, {}, {}, {}}, {9, {}, {}, {}}}},
    {"AModelThatWasUnloadedIsLoadedAgain",
     {{"m", "1"}},
     {{0, {}, {}, {}},
      {3, {}, {}, {"m"}},
      {4, {{"m", "1"}}, {}, {}},
      {7, {{"m", "1"}}, {"m"}, {}}}},
    {"ModelsAreIndependent",
     {{"a", "1"}, {"b", "1"}},
     {{0, {{"a", "2"}, {"b", "1"}, {"c", "1"}}, {}, {}},
      {3, {{"a", "2"}, {"c", "1"}}, {"a", "c"}, {}},
      {6, {{"a", "2"}, {"c", "1"}}, {}, {"b"}}}},
};

TEST(RepositoryChangesRepeatTest, AChangeThatWasNotHandledIsDueAgain) {
  RepositoryChanges changes(absl::Seconds(3), {{"gone", "1"}});
  const auto update = [&](int second) {
    return changes.Update({{"m", "1"}}, absl::UnixEpoch() + absl::Seconds(second));
  };
  update(10);
  for (int second = 13; second <= 14; ++second) {
    const auto due = update(second);
    EXPECT_EQ(due.load, Strings{"m"}) << second;
    EXPECT_EQ(due.unload, Strings{"gone"}) << second;
    changes.Repeat("m");
    changes.Repeat("gone");
  }
  update(15);
  const auto none = update(30);
  EXPECT_EQ(none.load, Strings{});
  EXPECT_EQ(none.unload, Strings{});
}

INSTANTIATE_TEST_SUITE_P(All, RepositoryChangesTest, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace attendant
