// SPDX-License-Identifier: Apache-2.0
// The calls that load and unload models, and those about shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/kserve/fixture.h"

namespace attendant {
namespace {

using testing::HasSubstr;

class KServeControlTest : public KServeServiceTest {
 protected:
  grpc::Status Load(const inference::RepositoryModelLoadRequest& request) {
    grpc::ClientContext context;
    inference::RepositoryModelLoadResponse response;
    return stub_->RepositoryModelLoad(&context, request, &response);
  }
  grpc::Status Load(const std::string& name) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name(name);
    return Load(request);
  }
  grpc::Status Unload(const inference::RepositoryModelUnloadRequest& request) {
    grpc::ClientContext context;
    inference::RepositoryModelUnloadResponse response;
    return stub_->RepositoryModelUnload(&context, request, &response);
  }
  bool Ready(const std::string& name) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(name);
    inference::ModelReadyResponse response;
    EXPECT_TRUE(stub_->ModelReady(&context, request, &response).ok());
    return response.ready();
  }
  std::vector<inference::RepositoryIndexResponse::ModelIndex> Index(bool ready) {
    grpc::ClientContext context;
    inference::RepositoryIndexRequest request;
    request.set_ready(ready);
    inference::RepositoryIndexResponse response;
    EXPECT_TRUE(stub_->RepositoryIndex(&context, request, &response).ok());
    return {response.models().begin(), response.models().end()};
  }
};

TEST_F(KServeControlTest, UnloadsAndLoadsWithTheSameBits) {
  const std::vector<float> before = Values(Infer(Request("tiny.ids", 1, {5, 6, 7})));
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("tiny");
  (*unload.mutable_parameters())["unload_dependents"].set_bool_param(true);
  ASSERT_TRUE(Unload(unload).ok());
  ModelInferResponse response;
  const grpc::Status refused = Infer(Request("tiny.ids", 1, {5, 6, 7}), response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("not loaded"));
  EXPECT_FALSE(Ready("tiny.ids"));
  EXPECT_TRUE(Index(/*ready=*/true).empty());
  ASSERT_EQ(Index(/*ready=*/false).size(), 2u);
  EXPECT_EQ(Index(false)[0].state(), "UNAVAILABLE");
  EXPECT_EQ(Index(false)[0].reason(), "unloaded");
  ASSERT_TRUE(Load("tiny").ok());
  EXPECT_TRUE(Ready("tiny.ids"));
  EXPECT_EQ(Index(true)[0].state(), "READY");
  EXPECT_EQ(Values(Infer(Request("tiny.ids", 1, {5, 6, 7}))), before);
}

TEST_F(KServeControlTest, ReloadsStartTheStatisticsAnew) {
  Infer(Request("tiny.ids", 1, {5}));
  EXPECT_EQ(Statistics("tiny.ids").inference_count(), 1u);
  ASSERT_TRUE(Load("tiny").ok());
  EXPECT_EQ(Statistics("tiny.ids").inference_count(), 0u);
}

// It waits until the model has loaded, and is held as long.
TEST_F(KServeControlTest, AChangeIsRefusedWithoutMemory) {
  const MemoryLimits limits;
  std::vector<ByteBudget::Share> taken;
  for (int64_t bytes = 0; bytes < limits.max_pending_request_bytes;) {
    const auto connection = budgets_.ForConnection(absl::StrCat(bytes));
    taken.push_back(*connection->AcquireRequest(limits.connection_request_bytes));
    bytes += limits.connection_request_bytes;
  }
  EXPECT_EQ(Load("tiny").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  taken.clear();
  EXPECT_TRUE(Load("tiny").ok());
}

TEST_F(KServeControlTest, SaysWhatIsWrong) {
  EXPECT_EQ(Load("nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  for (const char* name : {"", "../tiny", "tiny.ids"}) {
    EXPECT_EQ(Load(name).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
  }
  const std::pair<const char*, grpc::StatusCode> parameters[] = {
      {"config", grpc::StatusCode::UNIMPLEMENTED},
      {"file:1/model.safetensors", grpc::StatusCode::UNIMPLEMENTED},
      {"color", grpc::StatusCode::INVALID_ARGUMENT}};
  for (const auto& [name, code] : parameters) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name("tiny");
    (*request.mutable_parameters())[name].set_string_param("{}");
    const grpc::Status status = Load(request);
    EXPECT_EQ(status.error_code(), code) << name;
    EXPECT_THAT(status.error_message(), HasSubstr(name));
  }
  inference::RepositoryModelLoadRequest elsewhere;
  elsewhere.set_model_name("tiny");
  elsewhere.set_repository_name("other");
  EXPECT_EQ(Load(elsewhere).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("nobody");
  EXPECT_EQ(Unload(unload).error_code(), grpc::StatusCode::NOT_FOUND);
  (*unload.mutable_parameters())["color"].set_bool_param(true);
  EXPECT_EQ(Unload(unload).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Ready("tiny.ids"));
}

template <typename Request, typename Response, typename Call>
grpc::Status About(inference::GRPCInferenceService::Stub& stub, const std::string& name, Call call,
                   Response& response) {
  grpc::ClientContext context;
  Request request;
  request.set_name(name);
  return (stub.*call)(&context, request, &response);
}

TEST_F(KServeControlTest, NoSharedMemoryIsEverRegistered) {
  using Stub = inference::GRPCInferenceService::Stub;
#define EXPECT_NO_REGION(Kind)                                                                     \
  {                                                                                                \
    using StatusRequest = inference::Kind##SharedMemoryStatusRequest;                              \
    using UnregisterRequest = inference::Kind##SharedMemoryUnregisterRequest;                      \
    inference::Kind##SharedMemoryStatusResponse status;                                            \
    inference::Kind##SharedMemoryUnregisterResponse none;                                          \
    EXPECT_TRUE(About<StatusRequest>(*stub_, "", &Stub::Kind##SharedMemoryStatus, status).ok());   \
    EXPECT_EQ(status.regions_size(), 0);                                                           \
    EXPECT_EQ(About<StatusRequest>(*stub_, "mine", &Stub::Kind##SharedMemoryStatus, status)        \
                  .error_code(),                                                                   \
              grpc::StatusCode::NOT_FOUND);                                                        \
    for (const char* name : {"", "mine"}) {                                                        \
      EXPECT_TRUE(                                                                                 \
          About<UnregisterRequest>(*stub_, name, &Stub::Kind##SharedMemoryUnregister, none).ok()); \
    }                                                                                              \
  }
  EXPECT_NO_REGION(System)
  EXPECT_NO_REGION(Cuda)
#undef EXPECT_NO_REGION
}

}  // namespace
}  // namespace attendant
