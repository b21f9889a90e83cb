// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cpu/simd/denormals.h"
#include "kernels/cpu/simd/vector_kernels.h"
#include "tests/kernels/cpu/simd/available_kernels.h"

namespace attendant::cpu {
namespace {

TEST(QuantizationTest, ARowOfAnyRangeHasANormalScale) {
  const ScopedDenormalFlush flush;  // as in the encoder's threads
  for (const VectorKernels* kernels : AvailableKernels()) {
    for (const float largest : {0.0f, 1e-45f, 1e-37f, 2.9e-36f, 3.1e-36f, 5e-36f, 1e-20f, 1e30f}) {
      const std::vector<float> x = {-largest, largest / 2, 0, largest};
      std::vector<uint8_t> bytes(x.size());
      RowQuantization quantization;
      kernels->int8.convert(x.data(), std::ssize(x), {bytes.data(), &quantization});
      EXPECT_TRUE(std::isnormal(quantization.scale)) << kernels->isa << " " << largest;
      EXPECT_GE(quantization.zero_point, 0) << largest;
      EXPECT_LE(quantization.zero_point, 255) << largest;
      EXPECT_EQ(bytes[2], quantization.zero_point) << largest;
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
