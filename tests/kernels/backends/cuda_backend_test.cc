// SPDX-License-Identifier: Apache-2.0
// What lies between the Backend contract and the CUDA library, over a library that does as it is
// told.
#include "kernels/backends/cuda_backend.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/backends/backends.h"
#include "kernels/backends/cuda_library.h"
#include "kernels/checkpoints/checkpoint.h"
#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr SessionLimits kLimits{.max_batch_tokens = 64, .max_batch_sequences = 4};

AttendantCudaStatus Failure(int32_t code, const char* message) {
  AttendantCudaStatus status{.code = code, .message = ""};
  std::snprintf(status.message, sizeof(status.message), "%s", message);
  return status;
}

class CudaBackendTest : public testing::Test {
 protected:
  CudaBackendTest() {
    void* library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    levers_ = reinterpret_cast<FakeCudaLeversFunction>(dlsym(library, FAKE_CUDA_LEVERS_SYMBOL))();
    saved_ = *levers_;
  }
  ~CudaBackendTest() override {
    EXPECT_EQ(levers_->models, 0);
    EXPECT_EQ(levers_->sessions, 0);
    *levers_ = saved_;
  }

  static std::unique_ptr<Backend> Make(const std::vector<int>& devices = {}) {
    auto backend = MakeCudaBackend({.library = FAKE_CUDA_LIBRARY, .devices = devices});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }
  static std::unique_ptr<PreparedEncoder> Prepare(const Backend& backend) {
    return PrepareCheckpoint(backend, GoldenDirectory(kTinyModels[0]), DType::kBf16);
  }

  FakeCudaLevers* levers_;
  FakeCudaLevers saved_;
};

TEST_F(CudaBackendTest, RunsABatch) {
  const auto backend = Make({1});
  const auto encoder = Prepare(*backend);
  EXPECT_EQ(encoder->info().backend, "cuda");
  EXPECT_EQ(encoder->info().isa, "sm_90");
  EXPECT_EQ(encoder->info().dtype, DType::kBf16);
  EXPECT_EQ(encoder->info().weight_bytes, 1 << 20);
  EXPECT_EQ(levers_->config.hidden, encoder->config().hidden);
  const auto session = encoder->NewSession(kLimits, 1);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->arena_bytes(), 1 << 21);
  const auto outputs = RunBatch(**session, {{{7, 8}, {0, 1}, {0, 0}}, {{9}, {0}, {0}}});
  const auto hidden = static_cast<size_t>(encoder->config().hidden);
  EXPECT_EQ(outputs[0].last_hidden_state[hidden], 8001.0f);
  EXPECT_EQ(outputs[1].last_hidden_state[0], 9000.0f);
  EXPECT_EQ(outputs[0].pooled[3], 5.0f);
  EXPECT_EQ(outputs[1].pooled[0], 1.0f);
}

// EmbeddingGemma has most of what encoders differ in.
TEST_F(CudaBackendTest, TellsTheLibraryOfEverySwitch) {
  const auto backend = Make({0});
  const auto encoder = PrepareCheckpoint(*backend, GoldenDirectory("tiny_gemma3"), DType::kBf16);
  ASSERT_NE(encoder, nullptr);
  const EncoderConfig& config = encoder->config();
  const AttendantCudaConfig& told = levers_->config;
  EXPECT_EQ(told.activation, ATTENDANT_CUDA_GELU_TANH);
  EXPECT_EQ(told.norm_place, ATTENDANT_CUDA_NORM_BOTH);
  EXPECT_EQ(told.rms_norm, 1);
  EXPECT_EQ(told.gated_ffn, 1);
  EXPECT_EQ(told.causal, 0);
  EXPECT_EQ(told.head_width, config.head_width);
  EXPECT_EQ(told.kv_heads, config.kv_heads);
  EXPECT_EQ(told.query_scale, config.query_scale);
  EXPECT_EQ(told.embedding_scale, config.embedding_scale);
  EXPECT_EQ(told.window, config.window);
}

TEST_F(CudaBackendTest, RefusesByNameWhatItDoesNotCompute) {
  const auto backend = Make({0});
  for (const auto& [model, lacking] :
       {std::pair{"tiny_deberta_v2", "score_bias"}, {"tiny_nomic_moe", "expert_layers"}}) {
    absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(GoldenDirectory(model));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const absl::Status refused =
        backend->Prepare(checkpoint->config, std::move(checkpoint->weights), DType::kBf16).status();
    EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
    EXPECT_EQ(refused.message(),
              absl::StrCat("the cuda back end does not compute an encoder with this ", lacking));
  }
}

TEST_F(CudaBackendTest, WritesAttentionWeightsWhereAsked) {
  const auto backend = Make();
  const auto encoder = Prepare(*backend);
  const auto session = encoder->NewSession(kLimits, 1);
  ASSERT_TRUE(session.ok());
  PackedBatch batch;
  const std::vector<int32_t> zeros(4);
  batch.Append(zeros, zeros, zeros);
  const std::vector<SequenceOutputs> sequences(1);
  const std::vector<int32_t> layers = {0, 1};
  std::vector<float> weights(2 * 1 * 4 * 4, -1);
  const std::vector<LayerOutputs> wanted = {{.attention_layers = layers,
                                             .attention_heads = std::span(zeros).first(1),
                                             .attention_weights = weights.data(),
                                             .hidden_layers = {},
                                             .hidden_states = nullptr}};
  Outputs outputs;
  ASSERT_TRUE((*session)->Run(batch, {.sequences = sequences, .layers = wanted}, outputs).ok());
  EXPECT_THAT(weights, testing::Each(0.25f));
}

TEST_F(CudaBackendTest, SharesSessionsOutAmongTheDevices) {
  const auto backend = Make();
  EXPECT_EQ(backend->defaults().sessions, 4);
  const auto encoder = Prepare(*backend);
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(*encoder->NewSession(kLimits, 1));
  EXPECT_EQ(levers_->session_devices[0], 2);
  EXPECT_EQ(levers_->session_devices[1], 2);
}

TEST_F(CudaBackendTest, CountsWhatEndedSessionsDid) {
  const auto backend = Make({0});
  const auto encoder = Prepare(*backend);
  auto first = *encoder->NewSession(kLimits, 1);
  auto second = *encoder->NewSession(kLimits, 1);
  first.reset();
  const std::vector<DeviceUse> uses = encoder->device_use();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].name, "Fake 0");
  EXPECT_EQ(uses[0].busy_seconds, 3.0);
  EXPECT_EQ(uses[0].memory_used_bytes, 3 << 28);
  ASSERT_EQ(uses[0].groups.size(), static_cast<size_t>(ATTENDANT_CUDA_NUM_GROUPS));
  EXPECT_EQ(uses[0].groups[2].name, "attention");
  EXPECT_EQ(uses[0].groups[2].seconds, 6.0);
}

TEST_F(CudaBackendTest, RefusesWhatTheDevicesLack) {
  const auto backend = Make();
  EXPECT_EQ(backend->Supports(DType::kInt8).code(), StatusCode::kUnimplemented);
  levers_->dtypes = 1u << ATTENDANT_CUDA_F32;
  const auto old = Make();
  EXPECT_EQ(old->preferred_dtype(), DType::kF32);
  EXPECT_THAT(std::string(old->Supports(DType::kFp8).message()),
              HasSubstr("GPU 0 (Fake 0, sm_90)"));
}

TEST_F(CudaBackendTest, ErrorsAreStatuses) {
  const auto backend = Make();
  auto encoder = Prepare(*backend);
  auto session = *encoder->NewSession(kLimits, 1);
  PackedBatch batch;
  const std::vector<int32_t> zeros(4);
  batch.Append(zeros, zeros, zeros);
  const std::vector<SequenceOutputs> sequences(1);
  const OutputSpec spec{.sequences = sequences};
  Outputs outputs;
  levers_->run = Failure(ATTENDANT_CUDA_INTERNAL, "a kernel failed");
  EXPECT_EQ(session->Run(batch, spec, outputs).code(), StatusCode::kInternal);
  levers_->run = {};
  EXPECT_TRUE(session->Run(batch, spec, outputs).ok());
  levers_->run = Failure(ATTENDANT_CUDA_DEVICE_LOST, "uncorrectable ECC error");
  const absl::Status lost = session->Run(batch, spec, outputs);
  EXPECT_EQ(lost.code(), StatusCode::kUnavailable);
  EXPECT_EQ(lost.message(), "GPU 0: uncorrectable ECC error");

  levers_->create_session = Failure(ATTENDANT_CUDA_RESOURCE_EXHAUSTED, "out of memory");
  EXPECT_EQ(encoder->NewSession(kLimits, 1).status().code(), StatusCode::kResourceExhausted);
  // A batch beyond the limits never reaches the device.
  const int32_t runs = levers_->runs;
  const std::vector<int32_t> many(65);
  batch.Append(many, many, many);
  EXPECT_EQ(session->Run(batch, spec, outputs).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(levers_->runs, runs);
}

TEST_F(CudaBackendTest, SaysWhyItCannotBeHad) {
  const auto status = [](const CudaBackendOptions& options) {
    return MakeCudaBackend(options).status();
  };
  EXPECT_EQ(status({.library = "/nowhere/libattendant_cuda.so", .devices = {}}),
            absl::NotFoundError("there is no /nowhere/libattendant_cuda.so"));
  const TempDirectory folder;
  const std::string garbage = folder / "garbage.so";
  WriteFile(garbage, "no library");
  EXPECT_EQ(status({.library = garbage, .devices = {}}).code(), StatusCode::kUnavailable);
  const absl::Status foreign = status({.library = "libc.so.6", .devices = {}});
  EXPECT_EQ(foreign.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(foreign.message(), "libc.so.6 has no attendant_cuda_interface");
  EXPECT_EQ(status({.library = FAKE_CUDA_LIBRARY, .devices = {2}}).code(),
            StatusCode::kInvalidArgument);
  levers_->version = 77;
  EXPECT_EQ(status({.library = FAKE_CUDA_LIBRARY, .devices = {}}).code(),
            StatusCode::kFailedPrecondition);
  *levers_ = saved_;
  levers_->devices = 0;
  EXPECT_EQ(status({.library = FAKE_CUDA_LIBRARY, .devices = {}}).code(), StatusCode::kUnavailable);
  levers_->count_devices = Failure(ATTENDANT_CUDA_UNAVAILABLE, "no CUDA driver");
  EXPECT_EQ(status({.library = FAKE_CUDA_LIBRARY, .devices = {}}).message(), "no CUDA driver");
}

TEST(LoadCudaLibraryTest, LooksForTheDriverFirst) {
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr) {
    GTEST_SKIP() << "this machine has an NVIDIA driver";
  }
  const absl::Status status = LoadCudaLibrary("").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("there is no NVIDIA driver: libcuda.so.1"));
}

TEST_F(CudaBackendTest, AutoTakesTheGpuWhereItHasTheFormat) {
  BackendOptions options;
  options.cuda_library = FAKE_CUDA_LIBRARY;
  EXPECT_EQ(ChooseBackend("auto", "auto", options).name, "cuda");
  EXPECT_EQ(ChooseBackend("auto", "fp8", options).name, "cuda");
  const BackendChoice narrow = ChooseBackend("auto", "int8", options);
  EXPECT_EQ(narrow.name, "cpu");
  EXPECT_THAT(narrow.reason, HasSubstr("computing on the CPU: GPU 0 (Fake 0, sm_90) has no int8"));
  options.cuda_library = "/nowhere/lib.so";
  EXPECT_EQ(ChooseBackend("auto", "auto", options).reason,
            "computing on the CPU: there is no /nowhere/lib.so");
  EXPECT_EQ(ChooseBackend("reference", "auto", options).name, "reference");
  EXPECT_THAT(ChooseBackend("cuda", "auto", options).reason, IsEmpty());
  EXPECT_EQ(MakeBackend("cuda", options).status().code(), StatusCode::kNotFound);
  EXPECT_EQ((*MakeBackend("auto", options))->name(), "cpu");
}

TEST(ParseCudaDevicesTest, TakesAListOrAll) {
  EXPECT_THAT(*ParseCudaDevices("all"), IsEmpty());
  EXPECT_THAT(*ParseCudaDevices("2,0"), ElementsAre(2, 0));
  for (const char* wrong : {"", ",", "0,", "a", "-1", " 0", "0,0", "99999999999"}) {
    EXPECT_EQ(ParseCudaDevices(wrong).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace attendant
