// SPDX-License-Identifier: Apache-2.0
// Clients that load and unload the models of a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/client.h"
#include "tests/client/fake_server.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChangeModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect({.target = server_.address(), .timeout = absl::Seconds(20)});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ChangeModelTest, NamesTheModel) {
  EXPECT_TRUE(client_->LoadModel("toy").ok());
  EXPECT_TRUE(client_->UnloadModel("caf\u00e9").ok());
  EXPECT_THAT(server_.changes(), ElementsAre("load toy", "unload caf\u00e9"));
  const absl::Status status = client_->LoadModel("a\xff");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(server_.changes(), testing::SizeIs(2)) << "protobuf would log, and send it";
}

TEST_F(ChangeModelTest, PassesTheServersErrorsOn) {
  for (const absl::Status& status :
       {absl::NotFoundError("there is no model 'toy'"), absl::UnavailableError("stopping"),
        absl::FailedPreconditionError("token 0 is not finite")}) {
    server_.FailNext(1, status);
    EXPECT_EQ(client_->LoadModel("toy"), status);
  }
}

// UNAVAILABLE, as from Triton, would tell the caller to try again.
TEST_F(ChangeModelTest, AServerThatMakesNoChangesIsNotUnavailable) {
  server_.FailNext(2, absl::UnavailableError("explicit model load / unload is not allowed: why"));
  EXPECT_TRUE(absl::IsPermissionDenied(client_->LoadModel("toy")));
  const absl::Status status = client_->UnloadModel("toy");
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(status.message(), HasSubstr("not allowed: why"));
}

TEST_F(ChangeModelTest, ForgetsTheOnlyModel) {
  EXPECT_EQ(client_->OnlyModel().value_or("?"), "toy");
  server_.SetModels({"second"});
  EXPECT_EQ(client_->OnlyModel().value_or("?"), "toy") << "asked for once";
  EXPECT_TRUE(client_->UnloadModel("toy").ok());
  EXPECT_EQ(client_->OnlyModel().value_or("?"), "second");
  server_.SetModels({"third"});
  server_.FailNext(1, absl::DeadlineExceededError("late"));
  EXPECT_FALSE(client_->LoadModel("third").ok());
  EXPECT_EQ(client_->OnlyModel().value_or("?"), "third") << "the server goes on with it";
}

TEST_F(ChangeModelTest, ReadsTheBytesOfTheAnswer) {
  server_.GarbleAnswers();
  EXPECT_TRUE(absl::IsInternal(client_->LoadModel("toy")));
}

}  // namespace
}  // namespace attendant::client
