// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/server/http/http_client.h"
#include "tests/server/in_process_server.h"

namespace attendant {

// The tiny model behind the HTTP port.
class DoorsTest : public testing::Test {
 protected:
  explicit DoorsTest(const InProcessServer::Options& options = {}) : server_(options) {
    server_.AwaitReady();
  }

  HttpAnswer Post(const std::string& path, const std::string& body,
                  const std::string& headers = "") {
    return HttpPost(server_.http_port(), path, body, headers);
  }
  HttpAnswer Get(const std::string& path, const std::string& headers = "") {
    return HttpGet(server_.http_port(), path, headers);
  }
  static nlohmann::json Json(const HttpAnswer& answer) {
    return nlohmann::json::parse(answer.body, nullptr, false);
  }

  // What gRPC answers for texts: [texts, hidden].
  std::vector<std::vector<float>> ByGrpc(const std::vector<std::string>& texts) {
    v1::EncodeRequest request;
    request.set_model("tiny");
    for (const std::string& text : texts) {
      request.mutable_sequences()->add_sequences()->set_text(text);
    }
    const std::vector<float> all = Floats(server_.Encode(request).pooled());
    std::vector<std::vector<float>> rows;
    const size_t hidden = all.size() / texts.size();
    for (size_t i = 0; i < all.size(); i += hidden) {
      rows.emplace_back(all.begin() + static_cast<ptrdiff_t>(i),
                        all.begin() + static_cast<ptrdiff_t>(i + hidden));
    }
    return rows;
  }

  InProcessServer server_;
};

}  // namespace attendant
