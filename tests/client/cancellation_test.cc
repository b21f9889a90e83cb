// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <utility>

#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "tests/client/fake_server.h"

namespace attendant::client {
namespace {

const EncodeRequest kRequest{.model = "toy", .sequences = {"a"}};

// Its server does not answer, and its client has no timeout.
class CancellationTest : public testing::Test {
 protected:
  CancellationTest() { server_.Stall(); }

  FakeServer server_;
  std::unique_ptr<Client> client_ =
      *Client::Connect({.target = server_.address(), .timeout = absl::InfiniteDuration()});
};

TEST_F(CancellationTest, CancelsWhatRunsWhenDestroyed) {
  absl::StatusOr<EncodeResult> result = absl::UnknownError("never called");
  client_->EncodeAsync(kRequest,
                       [&](absl::StatusOr<EncodeResult> answer) { result = std::move(answer); });
  client_.reset();
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
}

TEST_F(CancellationTest, AStopCancelsACall) {
  for (const bool before : {false, true}) {
    std::stop_source stop;
    if (before) stop.request_stop();
    absl::Status status;
    absl::Notification done;
    client_->EncodeAsync(
        kRequest,
        [&](const absl::StatusOr<EncodeResult>& answer) {
          status = answer.status();
          done.Notify();
        },
        stop.get_token());
    stop.request_stop();
    done.WaitForNotification();
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  }
}

TEST_F(CancellationTest, CancelsWhatCallbacksStartWhileItIsDestroyed) {
  Client& used = *client_;
  absl::Status second = absl::UnknownError("never called");
  used.EncodeAsync(kRequest, [&](const absl::StatusOr<EncodeResult>&) {
    used.EncodeAsync(kRequest,
                     [&](const absl::StatusOr<EncodeResult>& answer) { second = answer.status(); });
  });
  client_.reset();
  EXPECT_TRUE(absl::IsCancelled(second)) << second;
}

}  // namespace
}  // namespace attendant::client
