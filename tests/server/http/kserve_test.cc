// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/http/gzip.h"
#include "tests/server/http/doors_fixture.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kIds[] = "/v2/models/tiny.ids/infer";
constexpr char kText[] = "/v2/models/tiny/infer";
constexpr char kTextJson[] =
    R"({"id":"mine","inputs":[{"name":"text","datatype":"BYTES","shape":[2,1],
        "data":[["hello world"],["hello"]]}]})";

class KServeHttpTest : public DoorsTest {
 protected:
  // `json`, and `binary` behind it.
  HttpAnswer PostBinary(const std::string& path, const std::string& json,
                        const std::string& binary) {
    return Post(path, json + binary,
                absl::StrCat("Inference-Header-Content-Length: ", json.size(), "\r\n"));
  }
  template <typename Number>
  static std::string Bytes(const std::vector<Number>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
  }
  static std::vector<float> Values(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
  std::vector<float> Flat(const std::vector<std::string>& texts) {
    std::vector<float> all;
    for (const std::vector<float>& row : ByGrpc(texts))
      all.insert(all.end(), row.begin(), row.end());
    return all;
  }
};

TEST_F(KServeHttpTest, TensorsAsJson) {
  const HttpAnswer answer = Post(kText, kTextJson);
  ASSERT_EQ(answer.code, 200) << answer.body;
  const nlohmann::json json = Json(answer);
  EXPECT_EQ(json["id"], "mine");
  EXPECT_EQ(json["model_name"], "tiny");
  EXPECT_EQ(json["model_version"], "1");
  const nlohmann::json& output = json["outputs"][0];
  EXPECT_EQ(output["name"], "sentence_embedding");
  EXPECT_EQ(output["datatype"], "FP32");
  EXPECT_EQ(output["shape"], (std::vector<int>{2, 16}));
  EXPECT_EQ(output["data"].get<std::vector<float>>(), Flat({"hello world", "hello"}));
}

TEST_F(KServeHttpTest, TensorsAsBytes) {
  const std::string json =
      R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,4],
          "parameters":{"binary_data_size":32}},{"name":"attention_mask","datatype":"INT32",
          "shape":[1,4],"data":[1,1,1,1]}],"parameters":{"binary_data_output":true}})";
  const HttpAnswer answer = PostBinary(kIds, json, Bytes<int64_t>({2, 4, 5, 3}));
  ASSERT_EQ(answer.code, 200) << answer.body;
  const size_t at = answer.head.find("Inference-Header-Content-Length: ");
  ASSERT_NE(at, std::string::npos);
  const size_t json_bytes = std::stoul(answer.head.substr(at + 33));
  const nlohmann::json head = nlohmann::json::parse(answer.body.substr(0, json_bytes));
  EXPECT_EQ(head["outputs"][0]["parameters"]["binary_data_size"], 64);
  EXPECT_EQ(Values(answer.body.substr(json_bytes)), Flat({"hello world"}));
}

TEST_F(KServeHttpTest, ABytesTensorAndACompressedBody) {
  const std::string text("\x05\0\0\0hello", 9);
  const std::string json =
      R"({"inputs":[{"name":"text","datatype":"BYTES","shape":[1,1],
          "parameters":{"binary_data_size":9}}],
          "outputs":[{"name":"sentence_embedding","parameters":{"binary_data":true}}]})";
  const HttpAnswer plain = PostBinary(kText, json, text);
  ASSERT_EQ(plain.code, 200) << plain.body;
  const HttpAnswer packed =
      Post(kText, Gzip(json + text),
           absl::StrCat("Content-Encoding: gzip\r\nInference-Header-Content-Length: ", json.size(),
                        "\r\n"));
  EXPECT_EQ(packed.body, plain.body);
}

TEST_F(KServeHttpTest, TensorsAsJsonAreCompressedAndAsBytesAreNot) {
  const std::string ids = absl::StrJoin(std::vector<int>(64, 4), ",");
  for (const bool binary : {false, true}) {
    const HttpAnswer answer =
        Post("/v2/models/tiny.ids/infer",
             absl::StrCat(R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[32,2],)",
                          R"("data":[)", ids, R"(]}],"parameters":{"binary_data_output":)",
                          binary ? "true" : "false", "}}"),
             "Accept-Encoding: gzip\r\n");
    ASSERT_EQ(answer.code, 200) << answer.body;
    EXPECT_EQ(absl::StrContains(answer.head, "Content-Encoding: gzip"), !binary) << answer.head;
  }
}

TEST_F(KServeHttpTest, TheEncoderGivesStates) {
  const HttpAnswer answer =
      Post("/v2/models/tiny.encoder/versions/1/infer",
           R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,3],"data":[2,4,3]}]})");
  ASSERT_EQ(answer.code, 200) << answer.body;
  EXPECT_EQ(Json(answer)["outputs"][0]["shape"], (std::vector<int>{1, 3, 16}));
  EXPECT_EQ(Json(answer)["outputs"][0]["data"].size(), 48u);
}

TEST_F(KServeHttpTest, HealthAndMetadata) {
  EXPECT_EQ(Get("/v2/health/live").code, 200);
  EXPECT_EQ(Get("/v2/health/ready").code, 200);
  EXPECT_EQ(Get("/v2/models/tiny/ready").code, 200);
  EXPECT_EQ(Get("/v2/models/tiny/versions/1/ready").code, 200);
  EXPECT_EQ(Get("/v2/models/tiny/versions/2/ready").code, 404);
  EXPECT_EQ(Get("/v2/models/nobody/ready").code, 404);
  EXPECT_EQ(Json(Get("/v2"))["name"], "attendant");
  EXPECT_THAT(Get("/v2").body, Not(HasSubstr("model_repository")))
      << "it is served over gRPC alone";
  const nlohmann::json metadata = Json(Get("/v2/models/tiny.ids"));
  EXPECT_EQ(metadata["name"], "tiny.ids");
  EXPECT_THAT(metadata["versions"], ElementsAre("1"));
  EXPECT_EQ(metadata["inputs"][0]["shape"], (std::vector<int>{-1, -1}));
  EXPECT_EQ(metadata["outputs"][0]["datatype"], "FP32");
  const nlohmann::json config = Json(Get("/v2/models/tiny/config"));
  EXPECT_EQ(config["max_batch_size"], 4096);
  EXPECT_EQ(config["input"][0]["data_type"], "TYPE_STRING");
  EXPECT_EQ(config["output"][0]["dims"], (std::vector<int>{16}));
}

TEST_F(KServeHttpTest, Statistics) {
  ASSERT_EQ(Post(kText, kTextJson).code, 200);
  const nlohmann::json one = Json(Get("/v2/models/tiny/stats"))["model_stats"][0];
  EXPECT_EQ(one["name"], "tiny");
  EXPECT_EQ(one["inference_count"], 2);
  EXPECT_EQ(one["inference_stats"]["success"]["count"], 1);
  EXPECT_EQ(Json(Get("/v2/models/stats"))["model_stats"].size(), 3u);
}

TEST_F(KServeHttpTest, ErrorsHaveItsShape) {
  struct Case {
    std::string json, binary;
    const char* message;
  };
  const auto input = [](const std::string& rest) {
    return absl::StrCat(R"({"inputs":[{"name":"input_ids",)", rest, "}]}");
  };
  for (const Case& c : {
           Case{"", "", "not valid JSON"},
           Case{"[]", "", "must be a JSON object"},
           Case{"{}", "", "input 'input_ids' is missing"},
           Case{R"({"inputs":{}})", "", "inputs must be an array"},
           Case{R"({"inputs":[1]})", "", "inputs must be an array of objects"},
           Case{input(R"("datatype":"INT64")"), "", "has no shape"},
           Case{input(R"("datatype":"INT64","shape":["a"])"), "", "shape must be"},
           Case{input(R"("datatype":"INT64","shape":[1,1,1,1,1,1,1,1,1],"data":[1])"), "",
                "more than 8"},
           Case{input(R"("datatype":"INT64","shape":[1,2],"data":[1])"), "",
                "input 'input_ids' has 1 elements in data, its shape [1,2] has 2"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"data":[[1,2]])"), "",
                "has 2 elements in data"},
           Case{input(R"("datatype":"BYTES","shape":[1,1],"data":[])"), "",
                "has 0 elements in data"},
           Case{input(R"("datatype":"INT64","shape":[-1,1],"data":[1])"), "", "-1"},
           Case{input(R"("datatype":"INT64","shape":[9223372036854775807,2],"data":[1])"), "",
                "input_ids"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"data":["x"])"), "",
                "data must be integers"},
           Case{input(R"("datatype":"INT32","shape":[1,1],"data":[3000000000])"), "", "no INT32"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"data":1)"), "", "data must be an array"},
           Case{input(R"("datatype":"FP32","shape":[1,1],"data":[1.5])"), "", "expected INT64"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"parameters":{"binary_data_size":9})"),
                "12345678", "there are 8 bytes left"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"parameters":{"binary_data_size":-1})"),
                "12345678", "binary_data_size -1"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"parameters":{"binary_data_size":true})"),
                "12345678", "wrong type"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"data":[4],)"
                      R"("parameters":{"binary_data_size":8})"),
                "12345678", "has both data and binary_data_size"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"parameters":{"a":[]})"), "",
                "parameter 'a'"},
           Case{input(R"("datatype":"INT64","shape":[1,1],"data":[4])"), "x", "1 bytes after"},
           Case{absl::StrCat(R"({"id":")", std::string(300, 'i'), R"("})"), "", "id has 300 bytes"},
       }) {
    const HttpAnswer answer = PostBinary(kIds, c.json, c.binary);
    EXPECT_EQ(answer.code, 400) << c.json;
    ASSERT_TRUE(Json(answer).contains("error")) << answer.body;
    EXPECT_THAT(Json(answer)["error"].get<std::string>(), HasSubstr(c.message)) << c.json;
  }
  EXPECT_EQ(Post("/v2/models/nobody/infer", kTextJson).code, 404);
  for (const char* length : {"x", "-1", "99999"}) {
    const HttpAnswer answer =
        Post(kText, kTextJson, absl::StrCat("Inference-Header-Content-Length: ", length, "\r\n"));
    EXPECT_EQ(answer.code, 400) << length;
  }
}

TEST_F(KServeHttpTest, SharedMemoryIsRefused) {
  const HttpAnswer answer =
      Post(kText, R"({"inputs":[{"name":"text","datatype":"BYTES","shape":[1,1],
             "parameters":{"shared_memory_region":"r","shared_memory_byte_size":8}}]})");
  EXPECT_EQ(answer.code, 501) << answer.body;
}

}  // namespace
}  // namespace attendant
