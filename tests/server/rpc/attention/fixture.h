// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attendant/v1/attention.grpc.pb.h"
#include "tests/server/in_process_server.h"

namespace attendant {

// `value` everywhere.
inline void Fill(v1::Tensor& tensor, const std::vector<int64_t>& shape, float value = 1) {
  size_t count = 1;
  tensor.Clear();
  tensor.set_dtype(v1::DTYPE_F32);
  for (int64_t dim : shape) {
    tensor.add_shape(dim);
    count *= static_cast<size_t>(dim);
  }
  const std::vector<float> values(count, value);
  tensor.set_data(values.data(), values.size() * sizeof(float));
}

// Self-attention of 2 sequences of 3 tokens of 4 dims, all 1: so is the output.
inline v1::AttendRequest OnesRequest() {
  v1::AttendRequest request;
  request.set_id("ones");
  Fill(*request.mutable_query(), {2, 3, 4});
  return request;
}

// A request that keeps a worker busy for about a second, or with 60,000 tokens for some seconds.
inline v1::AttendRequest LongRequest(int64_t tokens = 30000) {
  v1::AttendRequest request;
  Fill(*request.mutable_query(), {1, tokens, 4}, 0.01f);
  v1::AdditiveAttention& additive = *request.mutable_additive();
  Fill(*additive.mutable_query_weight(), {16, 4});
  Fill(*additive.mutable_key_weight(), {16, 4});
  Fill(*additive.mutable_score_weight(), {16});
  return request;
}

class AttentionTest : public testing::Test {
 protected:
  void Start(const InProcessServer::Options& options = {}) {
    server_ = std::make_unique<InProcessServer>(options);
    stub_ = v1::Attention::NewStub(server_->NewChannel());
  }

  grpc::Status Attend(const v1::AttendRequest& request, v1::AttendResponse& response,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    return stub_->Attend(&context, request, &response);
  }

  // The memory of a call is given back a little after its client has the answer: asks again while
  // there is no room, up to ten seconds.
  grpc::Status AttendOnceThereIsRoom(const v1::AttendRequest& request,
                                     v1::AttendResponse& response) {
    const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    grpc::Status status = Attend(request, response);
    while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
           std::chrono::steady_clock::now() < last) {
      status = Attend(request, response);
    }
    return status;
  }

  void ExpectOnes() {
    v1::AttendResponse response;
    const grpc::Status status = Attend(OnesRequest(), response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.id(), "ones");
    for (float value : Floats(response.output())) EXPECT_NEAR(value, 1, 1e-6);
  }

  std::unique_ptr<InProcessServer> server_;
  std::unique_ptr<v1::Attention::Stub> stub_;
};

}  // namespace attendant
