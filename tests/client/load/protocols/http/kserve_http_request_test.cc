// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/http/kserve_http_request.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

using nlohmann::json;

KserveRequest MakeRequest(const KserveModel& model, const Payload& payload) {
  const absl::StatusOr<KserveRequest> request = MakeKserveRequest(model, payload);
  EXPECT_TRUE(request.ok()) << request.status();
  return *request;
}

KserveRequest MakeIds(const std::string& datatype) {
  return MakeRequest({.name = "m",
                      .max_batch_size = 4,
                      .inputs = {{.name = "input_ids", .datatype = datatype, .dims = {-1}},
                                 {.name = "mask", .datatype = datatype, .dims = {-1}}}},
                     {.texts = {}, .ids = {{5, 6, 7}, {8}}});
}

KserveRequest MakeTexts() {
  return MakeRequest({.name = "m",
                      .max_batch_size = 4,
                      .inputs = {{.name = "text", .datatype = "BYTES", .dims = {1}}}},
                     {.texts = {"a \"text\"", "", "ü"}, .ids = {}});
}

TEST(KserveHttpRequestTest, BytesAreBehindTheJson) {
  const HttpRequest request = ToKserveHttpRequest(MakeIds("INT64"), /*json_tensors=*/false);
  EXPECT_EQ(request.tokens, 4);
  const size_t bytes = 2 * 2 * 3 * sizeof(int64_t);
  ASSERT_GT(request.body.size(), bytes);
  const size_t json_bytes = request.body.size() - bytes;
  EXPECT_EQ(request.headers, absl::StrCat("Content-Type: application/octet-stream\r\n"
                                          "Inference-Header-Content-Length: ",
                                          json_bytes, "\r\n"));
  EXPECT_EQ(json::parse(request.body.substr(0, json_bytes)), json::parse(R"({
    "inputs": [
      {"name": "input_ids", "datatype": "INT64", "shape": [2, 3], "parameters": {"binary_data_size": 48}},
      {"name": "mask", "datatype": "INT64", "shape": [2, 3], "parameters": {"binary_data_size": 48}}],
    "parameters": {"binary_data_output": true}})"));
  const int64_t expected[] = {5, 6, 7, 8, 0, 0, 1, 1, 1, 1, 0, 0};
  EXPECT_EQ(std::memcmp(request.body.data() + json_bytes, expected, bytes), 0);
}

TEST(KserveHttpRequestTest, TensorsMayBeJson) {
  for (const char* datatype : {"INT64", "INT32", "FP32"}) {
    const HttpRequest request = ToKserveHttpRequest(MakeIds(datatype), /*json_tensors=*/true);
    EXPECT_EQ(request.headers, "");
    EXPECT_EQ(request.tokens, 4);
    const json body = json::parse(request.body);
    EXPECT_EQ(body.size(), 1);
    const json inputs = body["inputs"];
    ASSERT_EQ(inputs.size(), 2);
    EXPECT_EQ(inputs[0]["datatype"], datatype);
    EXPECT_EQ(inputs[0]["shape"], json({2, 3}));
    EXPECT_EQ(inputs[0]["data"], json({5, 6, 7, 8, 0, 0})) << datatype;
    EXPECT_EQ(inputs[1]["data"], json({1, 1, 1, 1, 0, 0})) << datatype;
    EXPECT_FALSE(inputs[0].contains("parameters"));
  }
}

TEST(KserveHttpRequestTest, TextsAreStringsOrHaveTheirLengthBeforeThem) {
  const json texts = json::parse(ToKserveHttpRequest(MakeTexts(), true).body)["inputs"][0];
  EXPECT_EQ(texts["data"], json({"a \"text\"", "", "ü"}));
  EXPECT_EQ(texts["shape"], json({3, 1}));
  const std::string body = ToKserveHttpRequest(MakeTexts(), false).body;
  const std::string expected("\x8\0\0\0a \"text\"\0\0\0\0\2\0\0\0ü", 22);
  EXPECT_EQ(body.substr(body.size() - expected.size()), expected);
}

}  // namespace
}  // namespace attendant::client
