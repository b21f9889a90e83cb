// SPDX-License-Identifier: Apache-2.0
// The schemas of requests in the OpenAPI document, and what the doors read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

// Requests that the tiny model understands: a valid value where one is required.
const std::multimap<std::string, json> kEmbedding = {
    {"/v1/embeddings", {{"model", "tiny"}, {"input", "hello"}}},
    {"/embeddings", {{"model", "tiny"}, {"input", "hello"}}},
    {"/pooling", {{"model", "tiny"}, {"input", "hello"}}},
    {"/v1/embed", {{"model", "tiny"}, {"texts", {"hello"}}}},
    {"/v2/embed", {{"model", "tiny"}, {"texts", {"hello"}}}},
    {"/embed", {{"inputs", "hello"}}},
    {"/embed_all", {{"inputs", "hello"}}},
    {"/embed_sparse", {{"inputs", "hello"}}},
    {"/tokenize", {{"inputs", "hello"}}},
    {"/decode", {{"ids", {4}}}},
    {"/similarity",
     {{"inputs", {{"source_sentence", "hello"}, {"sentences", {"world"}}}},
      {"parameters", json::object()}}}};
// The same with a reranker.
const std::multimap<std::string, json> kScores = {
    {"/predict", {{"inputs", "hello"}}},
    {"/score", {{"model", "tiny"}, {"text_1", "hello"}, {"text_2", {"world"}}}},
    {"/v1/score", {{"model", "tiny"}, {"queries", "hello"}, {"documents", {"world"}}}},
    {"/rerank", {{"query", "hello"}, {"texts", {"world"}}}},
    {"/rerank", {{"query", "hello"}, {"documents", {"world"}}}},
    {"/v1/ranking", {{"model", "tiny"}, {"query", {{"text", "hello"}}}, {"passages", {"world"}}}},
    {"/v1/rerank", {{"model", "tiny"}, {"query", "hello"}, {"documents", {"world"}}}},
    {"/v2/rerank", {{"model", "tiny"}, {"query", "hello"}, {"documents", {"world"}}}}};

// OpenAI has it; it says nothing to this server.
const std::set<std::string> kNotRead = {"user"};

class SchemasTest : public DoorsTest {
 protected:
  using DoorsTest::DoorsTest;

  // The schema of each path's request.
  std::map<std::string, json> Schemas() {
    std::map<std::string, json> schemas;
    const json document = Json(Get("/openapi.json"));
    for (const auto& [path, methods] : document["paths"].items()) {
      if (!methods.contains("post") || !methods["post"].contains("requestBody")) continue;
      schemas[path] = methods["post"]["requestBody"]["content"]["application/json"]["schema"];
    }
    return schemas;
  }

  // The schema, or the ones of which it takes one.
  static json Alternatives(const json& schema) {
    return schema.value("oneOf", json::array({schema}));
  }

  static void AddNames(const json& schema, std::set<std::string>& names) {
    for (const json& one : schema.value("oneOf", json::array())) AddNames(one, names);
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, property] : properties.items()) {
      names.insert(name);
      AddNames(property, names);
    }
  }

  // Puts a value of no property's type at each name of `names` in the object at `place` of
  // `request`: refused where the schema has the name, else ignored.
  void Check(const std::string& path, const json& request, const json::json_pointer& place,
             const json& schema, const std::set<std::string>& names) {
    const HttpAnswer answer = Post(path, request.dump());
    const json properties = schema.value("properties", json::object());
    for (const std::string& name : names) {
      if (kNotRead.contains(name)) continue;
      const bool is_object =
          properties.contains(name) && properties[name].value("type", "") == "object";
      json changed = request;
      changed[place][name] = is_object ? json(5) : json::object();
      const HttpAnswer other = Post(path, changed.dump());
      SCOPED_TRACE(path + " " + changed.dump());
      if (properties.contains(name)) {
        EXPECT_EQ(other.code, 400);
        EXPECT_THAT(other.body, HasSubstr(name + " must be"));
        if (is_object) Check(path, request, place / name, properties[name], names);
      } else {
        EXPECT_EQ(other.code, answer.code) << other.body;
        if (answer.code != 200) {
          EXPECT_EQ(other.body, answer.body);
        }
      }
    }
  }

  // Checks `request` by the alternative whose fields it has, without fields that tell of another.
  void CheckChosen(const std::string& path, const json& request, const json& schema,
                   std::set<std::string> names) {
    json chosen;
    for (const json& one : Alternatives(schema)) {
      bool has_all = true;
      for (const std::string name : one.value("required", json::array())) {
        if (request.contains(name)) continue;
        has_all = false;
        names.erase(name);
      }
      if (has_all) chosen = one;
    }
    ASSERT_TRUE(chosen.is_object()) << path;
    Check(path, request, json::json_pointer(), chosen, names);
  }

  void CheckAll(const std::multimap<std::string, json>& requests) {
    std::map<std::string, json> schemas = Schemas();
    std::set<std::string> names;
    for (const auto& valid : {kEmbedding, kScores}) {
      for (const auto& [path, request] : valid) AddNames(schemas.at(path), names);
    }
    ASSERT_GT(names.size(), 20u);
    for (const auto& [path, request] : requests) {
      CheckChosen(path, request, schemas.at(path), names);
    }
  }
};

TEST_F(SchemasTest, HaveWhatTheDoorsOfEmbeddingsRead) { CheckAll(kEmbedding); }

class ScoreSchemasTest : public SchemasTest {
 protected:
  ScoreSchemasTest() : SchemasTest(Reranker()) {}

  static InProcessServer::Options Reranker() {
    InProcessServer::Options options;
    options.write_model = [](const std::string& folder) { WriteTinyClassifier(folder, {"yes"}); };
    return options;
  }
};

TEST_F(ScoreSchemasTest, HaveWhatTheDoorsOfScoresRead) { CheckAll(kScores); }

// Those of attendant.v1 and KServe follow from the protos, and / answers as the others.
TEST_F(SchemasTest, EachDoorIsChecked) {
  std::set<std::string> paths, checked;
  for (const auto& [path, schema] : Schemas()) {
    const bool of_proto =
        absl::StartsWith(path, "/attendant.v1.") || absl::StartsWith(path, "/v2/models/");
    if (!of_proto && path != "/") paths.insert(path);
  }
  for (const auto& valid : {kEmbedding, kScores}) {
    for (const auto& [path, request] : valid) checked.insert(path);
  }
  EXPECT_THAT(paths, UnorderedElementsAreArray(checked));
}

}  // namespace
}  // namespace attendant
