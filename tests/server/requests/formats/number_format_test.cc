// SPDX-License-Identifier: Apache-2.0
#include "server/requests/formats/number_format.h"

#include <gtest/gtest.h>

#include <string>

namespace attendant {
namespace {

TEST(NumberFormat, AppendsLittleEndian) {
  const float values[] = {1.0f, -2.0f};
  std::string bytes = "x";
  AppendValues(values, NumberFormat::kF16, bytes);
  EXPECT_EQ(bytes, std::string("x\x00\x3c\x00\xc0", 5));
  AppendValues(values, NumberFormat::kBf16, bytes);
  EXPECT_EQ(bytes.substr(5), std::string("\x80\x3f\x00\xc0", 4));
  AppendValues(values, NumberFormat::kF32, bytes);
  EXPECT_EQ(bytes.substr(9), std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8));
}

}  // namespace
}  // namespace attendant
