// SPDX-License-Identifier: Apache-2.0
// The probe tells orders of sums apart in every format, whatever the results are rounded to.
#include "kernels/cuda/engine/matmul_probe.h"

#include <gtest/gtest.h>

#include "tests/support/cuda/encoder_case.h"
#include "tests/support/cuda_emulation/emulation.h"

namespace attendant::cuda {
namespace {

// The emulation's (cublaslt.cc).
cublasLtMatmulAlgo_t AlgorithmWithId(uint64_t id) { return {{id}}; }
constexpr uint64_t kForward = 1, kBackward = 2, kForwardAgain = 3, kSplit = 4;

class MatmulProbeTest : public testing::TestWithParam<DType> {};

void Look(DType dtype) {
  AttendantCudaConfig config = cuda_test::SmallConfig();
  config.embedding_width = 32;  // so that there are all kinds
  const cuda_test::RandomEncoder encoder(config, 1);
  std::unique_ptr<Model> model;
  ASSERT_TRUE(Model::Create(0, encoder.config(), encoder.weights(), dtype, model).ok());
  const SessionSize size =
      SizeSession(model->config(), {.max_batch_tokens = 130, .max_batch_sequences = 2});
  Carver measure;
  PlaceDeviceBuffers(*model, size, measure);
  DeviceMemory memory;
  ASSERT_TRUE(AllocateDevice(measure.used_bytes(), memory).ok());
  Carver carver(memory.get());
  const DeviceBuffers buffers = PlaceDeviceBuffers(*model, size, carver);
  Stream stream;
  ASSERT_TRUE(MakeStream(stream).ok());
  const MatmulContext context{model->cublaslt(), dtype, buffers.workspace};
  for (int kind = 0; kind < kNumMatmulKinds; ++kind) {
    MatmulProbe probe(*model, context, buffers, size.rows, stream.get());
    ASSERT_TRUE(probe.SelectKind(static_cast<MatmulKind>(kind)).ok());
    ASSERT_TRUE(probe.SetReference(AlgorithmWithId(kForward)).ok());
    for (const int64_t rows : {16, 32, 128, 192}) {
      for (const uint64_t id : {kForward, kBackward, kForwardAgain, kSplit}) {
        bool same = false;
        ASSERT_TRUE(probe.HasSameBits(AlgorithmWithId(id), rows, same).ok());
        EXPECT_EQ(same, id == kForward || id == kForwardAgain)
            << "kind " << kind << ", rows " << rows << ", algorithm " << id;
      }
    }
  }
}

TEST_P(MatmulProbeTest, SeesOtherOrders) {
  cuda_emulation::Configure({});
  Look(GetParam());
  EXPECT_EQ(cuda_emulation::CountAlive(), cuda_emulation::Alive{});
}

INSTANTIATE_TEST_SUITE_P(Formats, MatmulProbeTest,
                         testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kFp8));

}  // namespace
}  // namespace attendant::cuda
