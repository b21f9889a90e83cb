// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/server/in_process_server.h"

namespace attendant {

// A server whose models are ready, and calls of attendant.v1.Encoder.
class EncoderRpcTest : public ::testing::Test {
 protected:
  explicit EncoderRpcTest(const InProcessServer::Options& options = {}) : server_(options) {
    server_.AwaitReady();
  }

  v1::EncodeResponse Encode(const v1::EncodeRequest& request) { return server_.Encode(request); }
  std::string Refusal(const v1::EncodeRequest& request) { return server_.Refusal(request); }

  InProcessServer server_;
};

}  // namespace attendant
