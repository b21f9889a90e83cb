// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/status_macros.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace attendant {
namespace {

absl::Status Error(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status FirstOf(const absl::Status& first, const absl::StatusOr<int>& second, int& evaluated) {
  const auto count = [&](const auto& result) -> const auto& { return ++evaluated, result; };
  ATTENDANT_RETURN_IF_ERROR(count(first));
  ATTENDANT_RETURN_IF_ERROR(count(second));
  return absl::OkStatus();
}

TEST(StatusMacrosTest, FirstErrorWinsAndNothingAfterItIsEvaluated) {
  int evaluated = 0;
  EXPECT_EQ(FirstOf(Error("first"), Error("second"), evaluated), Error("first"));
  EXPECT_EQ(evaluated, 1);
  EXPECT_EQ(FirstOf(absl::OkStatus(), Error("second"), evaluated), Error("second"));
  EXPECT_EQ(evaluated, 3);
  EXPECT_EQ(FirstOf(absl::OkStatus(), 5, evaluated), absl::OkStatus());
}

absl::StatusOr<std::string> Joined(absl::StatusOr<std::string> a,
                                   absl::StatusOr<std::unique_ptr<std::string>> b) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string first, std::move(a));
  std::unique_ptr<std::string> second;
  ATTENDANT_ASSIGN_OR_RETURN(second, std::move(b));
  return first + *second;
}

TEST(StatusMacrosTest, AssignsOrReturnsTheError) {
  const auto text = [](const char* value) { return std::make_unique<std::string>(value); };
  EXPECT_EQ(*Joined("a", text("b")), "ab");
  EXPECT_EQ(Joined(Error("first"), Error("second")).status(), Error("first"));
  EXPECT_EQ(Joined("a", Error("second")).status(), Error("second"));
}

// A StatusOr of a type that holds commas in its initializer, and macros side by side on a branch.
absl::StatusOr<std::pair<int, int>> Swapped(absl::StatusOr<std::pair<int, int>> pair, bool check) {
  if (check)
    ATTENDANT_RETURN_IF_ERROR(pair);
  else
    pair = std::pair<int, int>{0, 0};
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto values,
      absl::StatusOr<std::pair<int, int>>{std::pair<int, int>{pair->second, pair->first}});
  return values;
}

TEST(StatusMacrosTest, TakesCommasAndStandsInABranch) {
  EXPECT_EQ(*Swapped(std::pair<int, int>{1, 2}, true), (std::pair<int, int>{2, 1}));
  EXPECT_EQ(*Swapped(Error("first"), false), (std::pair<int, int>{0, 0}));
  EXPECT_EQ(Swapped(Error("first"), true).status(), Error("first"));
}

}  // namespace
}  // namespace attendant
