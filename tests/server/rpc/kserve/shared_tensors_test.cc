// SPDX-License-Identifier: Apache-2.0
// Tensors of ModelInfer in the client's shared memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/kserve/fixture.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr int64_t kOutputBytes = kHidden * 4;
constexpr int64_t kOutputAt = 64;

// A region "mine": token ids at its begin, the embedding at kOutputAt.
class SharedTensorsTest : public KServeServiceTest {
 protected:
  SharedTensorsTest()
      : KServeServiceTest(/*shared_memory=*/true),
        descriptor_(shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    EXPECT_EQ(ftruncate(descriptor_, 4096), 0);
    EXPECT_EQ(pwrite(descriptor_, ids_.data(), ids_.size() * 8, 0), 24);
  }
  ~SharedTensorsTest() override {
    close(descriptor_);
    shm_unlink(key_.c_str());
  }

  void SetUp() override {
    KServeServiceTest::SetUp();
    grpc::ClientContext context;
    inference::SystemSharedMemoryRegisterRequest request;
    request.set_name("mine");
    request.set_key(key_);
    request.set_byte_size(4096);
    inference::SystemSharedMemoryRegisterResponse response;
    const grpc::Status status = stub_->SystemSharedMemoryRegister(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  std::vector<float> Output() const {
    std::vector<float> values(kHidden);
    EXPECT_EQ(pread(descriptor_, values.data(), kOutputBytes, kOutputAt), kOutputBytes);
    return values;
  }

  const std::vector<int64_t> ids_ = {5, 6, 7};
  const std::string key_ = absl::StrCat("/attendant_tensors_", getpid());
  const int descriptor_;
};

template <typename Tensor>
void Share(Tensor& tensor, int64_t offset, int64_t bytes) {
  auto& parameters = *tensor.mutable_parameters();
  parameters["shared_memory_region"].set_string_param("mine");
  parameters["shared_memory_offset"].set_int64_param(offset);
  parameters["shared_memory_byte_size"].set_int64_param(bytes);
}

TEST_F(SharedTensorsTest, InputAndOutputMayLieThere) {
  const std::vector<float> expected = Values(Infer(Request("tiny.ids", 1, ids_)));
  ModelInferRequest request = Request("tiny.ids", 1, ids_);
  request.clear_raw_input_contents();
  Share(*request.mutable_inputs(0), 0, 24);
  EXPECT_EQ(Values(Infer(request)), expected);
  auto& output = *request.add_outputs();
  output.set_name("sentence_embedding");
  Share(output, kOutputAt, kOutputBytes);
  const ModelInferResponse response = Infer(request);
  EXPECT_EQ(Output(), expected);
  EXPECT_EQ(response.raw_output_contents(0), "");
  EXPECT_EQ(response.outputs(0).parameters().at("shared_memory_byte_size").int64_param(),
            kOutputBytes);
}

TEST_F(SharedTensorsTest, AnOutputThatDoesNotFitIsRefusedBeforeItIsComputed) {
  ModelInferRequest request = Request("tiny.ids", 1, ids_);
  auto& output = *request.add_outputs();
  output.set_name("sentence_embedding");
  Share(output, kOutputAt, kOutputBytes - 1);
  ModelInferResponse response;
  const grpc::Status status = Infer(request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr(absl::StrCat("has ", kOutputBytes, " bytes, its shared memory has ",
                                     kOutputBytes - 1)));
  EXPECT_EQ(Statistics("tiny.ids").execution_count(), 0u);
}

// It may come again, as its status says.
TEST_F(SharedTensorsTest, ACallWithoutMemoryForItsAnswerHasNoEffect) {
  std::vector<ByteBudget::Share> all;
  const int64_t part = MemoryLimits{}.connection_response_bytes;
  for (int64_t taken = 0; taken < MemoryLimits{}.max_pending_response_bytes; taken += part) {
    const auto connection = budgets_.ForConnection(absl::StrCat("peer ", taken));
    auto share = connection->AcquireResponse(part);
    while (!share.ok()) share = connection->AcquireResponse(part);  // a call has not quite ended
    all.push_back(*std::move(share));
  }
  const auto remove = [this] {
    grpc::ClientContext context;
    inference::SystemSharedMemoryUnregisterRequest request;
    request.set_name("mine");
    inference::SystemSharedMemoryUnregisterResponse response;
    return stub_->SystemSharedMemoryUnregister(&context, request, &response).error_code();
  };
  inference::SystemSharedMemoryStatusResponse regions;
  const auto list = [&] {
    grpc::ClientContext context;
    return stub_->SystemSharedMemoryStatus(&context, {}, &regions).error_code();
  };
  EXPECT_EQ(remove(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  all.back().ShrinkTo(part - kRequestBytes);
  EXPECT_EQ(list(), grpc::StatusCode::RESOURCE_EXHAUSTED) << "its answer does not fit";
  all.clear();
  EXPECT_EQ(list(), grpc::StatusCode::OK);
  EXPECT_EQ(regions.regions_size(), 1);
  EXPECT_EQ(remove(), grpc::StatusCode::OK);
  EXPECT_EQ(list(), grpc::StatusCode::OK);
  EXPECT_EQ(regions.regions_size(), 0);
}

}  // namespace
}  // namespace attendant
