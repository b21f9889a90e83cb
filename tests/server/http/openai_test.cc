// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/pooling.h"
#include "tests/server/http/doors_fixture.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr char kPath[] = "/v1/embeddings";

class OpenAiTest : public DoorsTest {
 protected:
  nlohmann::json Embed(const std::string& fields) {
    const HttpAnswer answer = Post(kPath, absl::StrCat(R"({"model":"tiny",)", fields, "}"));
    EXPECT_EQ(answer.code, 200) << answer.body;
    return Json(answer);
  }
  static std::vector<float> Floats(const nlohmann::json& answer, size_t index) {
    return answer["data"][index]["embedding"].get<std::vector<float>>();
  }
};

TEST_F(OpenAiTest, FloatsAndBase64AreTheBitsOfGrpc) {
  const auto expected = ByGrpc({"hello world", "hello"});
  const std::string input = R"("input":["hello world","hello"])";
  const nlohmann::json floats = Embed(input);
  EXPECT_EQ(floats["object"], "list");
  EXPECT_EQ(floats["model"], "tiny");
  EXPECT_EQ(floats["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(floats["usage"]["total_tokens"], 7);
  const nlohmann::json base64 = Embed(input + R"(,"encoding_format":"base64")");
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(floats["data"][i]["object"], "embedding");
    EXPECT_EQ(floats["data"][i]["index"], i);
    EXPECT_EQ(Floats(floats, i), expected[i]);
    std::string bytes;
    ASSERT_TRUE(absl::Base64Unescape(base64["data"][i]["embedding"].get<std::string>(), &bytes));
    ASSERT_EQ(bytes.size(), expected[i].size() * sizeof(float));
    EXPECT_EQ(std::memcmp(bytes.data(), expected[i].data(), bytes.size()), 0);
  }
}

TEST_F(OpenAiTest, TakesEveryFormOfInput) {
  const auto expected = ByGrpc({"hello world"});
  for (const char* input : {R"("hello world")", R"(["hello world"])", "[2,4,5,3]", "[[2,4,5,3]]"}) {
    EXPECT_EQ(Floats(Embed(absl::StrCat("\"input\":", input)), 0), expected[0]) << input;
  }
  EXPECT_EQ(Embed(R"("input":["hello",[2,4,3]])")["data"].size(), 2u);
}

TEST_F(OpenAiTest, DimensionsAreCutAndNormalizedAgain) {
  const std::vector<float> values = Floats(Embed(R"("input":"hello","dimensions":4)"), 0);
  ASSERT_EQ(values.size(), 4u);
  float squares = 0;
  for (const float value : values) squares += value * value;
  EXPECT_NEAR(squares, 1, 1e-5);
}

// A model whose last step is not Normalize.
class OpenAiUnnormalizedTest : public DoorsTest {
 protected:
  OpenAiUnnormalizedTest() : DoorsTest(Options()) {}

  static InProcessServer::Options Options() {
    InProcessServer::Options options;
    options.write_model = [](const std::string& folder) {
      WriteTinyModel(folder);
      std::filesystem::remove(folder + "/modules.json");
    };
    return options;
  }

  std::vector<float> Embed(const std::string& path, const std::string& more = "") {
    const HttpAnswer answer = Post(path, absl::StrCat(R"({"input":"hello")", more, "}"));
    EXPECT_EQ(answer.code, 200) << answer.body;
    return Json(answer)["data"][0]["embedding"].get<std::vector<float>>();
  }
  // The first `dims` numbers of what gRPC answers, with length 1.
  std::vector<float> Normalized(size_t dims) {
    std::vector<float> values = ByGrpc({"hello"})[0];
    values.resize(dims);
    NormalizeL2(values);
    return values;
  }
};

TEST_F(OpenAiUnnormalizedTest, WhatIsCutIsNormalizedAndTheRestIsAsTheModelSays) {
  EXPECT_EQ(Embed(kPath), ByGrpc({"hello"})[0]);
  EXPECT_EQ(Embed(kPath, R"(,"dimensions":4)"), Normalized(4));
  EXPECT_EQ(Embed(kPath, R"(,"dimensions":16)"), Normalized(16));
}

TEST_F(OpenAiUnnormalizedTest, TeisPathNormalizesAlways) {
  EXPECT_EQ(Embed("/embeddings"), Normalized(16));
  EXPECT_EQ(Embed("/embeddings", R"(,"dimensions":4)"), Normalized(4));
}

// As TEI's, Jina's and vLLM's clients say it.
TEST_F(OpenAiUnnormalizedTest, ARequestMaySayWhetherItsEmbeddingsAreNormalized) {
  const std::vector<float> raw = ByGrpc({"hello"})[0];
  const std::vector<float> first(raw.begin(), raw.begin() + 4);
  for (const char* yes : {R"(,"normalize":true)", R"(,"normalized":true)",
                          R"(,"normalized":true,"use_activation":true)"}) {
    EXPECT_EQ(Embed(kPath, yes), Normalized(16)) << yes;
  }
  EXPECT_EQ(Embed(kPath, R"(,"use_activation":true)"), raw);
  for (const char* no :
       {R"(,"normalize":false)", R"(,"normalized":false)", R"(,"use_activation":false)",
        R"(,"use_activation":false,"normalize":false)"}) {
    EXPECT_EQ(Embed(kPath, no), raw) << no;
    EXPECT_EQ(Embed("/embeddings", no), raw) << no;
    EXPECT_EQ(Embed(kPath, absl::StrCat(no, R"(,"dimensions":4)")), first) << no;
  }
  for (const char* both :
       {R"("normalize":true,"normalized":false)", R"("normalized":true,"use_activation":false)"}) {
    const HttpAnswer answer = Post(kPath, absl::StrCat(R"({"input":"hello",)", both, "}"));
    EXPECT_EQ(answer.code, 400) << both;
    EXPECT_THAT(answer.body, HasSubstr("normalized contradicts another one")) << both;
  }
}

TEST_F(OpenAiTest, ALongTextIsRefusedUnlessItMayBeCut) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "hello ";
  const HttpAnswer refused = Post(kPath, absl::StrCat(R"({"model":"tiny","input":")", text, "\"}"));
  EXPECT_EQ(refused.code, 400);
  EXPECT_THAT(refused.body, HasSubstr("32"));
  const nlohmann::json cut =
      Embed(absl::StrCat(R"("truncate_prompt_tokens":-1,"input":")", text, "\""));
  EXPECT_EQ(cut["usage"]["prompt_tokens"], 32);
}

// NVIDIA's clients send a word, Jina's a boolean.
TEST_F(OpenAiTest, TruncateSaysWhichSideOfALongTextGoes) {
  const auto embed = [this](const std::string& path, const std::string& truncate) {
    std::string text = "hello";
    for (int i = 0; i < 40; ++i) text += " world";
    return Post(path, absl::StrCat(R"({"model":"tiny","input":")", text, R"(","truncate":)",
                                   truncate, "}"));
  };
  for (const char* path : {"/v1/embeddings", "/embeddings"}) {
    EXPECT_EQ(embed(path, R"("NONE")").code, 400);
    EXPECT_EQ(embed(path, "false").code, 400);
    const HttpAnswer end = embed(path, R"("END")"), start = embed(path, R"("START")");
    EXPECT_EQ(Json(end)["usage"]["prompt_tokens"], 32);
    EXPECT_EQ(Json(start)["usage"]["prompt_tokens"], 32);
    EXPECT_NE(end.body, start.body);
    EXPECT_EQ(embed(path, "true").body, end.body);
  }
}

// vLLM's clients name the side in one field, TEI's in another.
TEST_F(OpenAiTest, AFieldSaysWhereALongTextIsCut) {
  std::string text = "hello";
  for (int i = 0; i < 40; ++i) text += " world";
  const auto embed = [&](const std::string& fields) {
    return Post(kPath, absl::StrCat(R"({"model":"tiny","input":")", text, R"(",)", fields, "}"));
  };
  const HttpAnswer end = embed(R"("truncate":"END")"), start = embed(R"("truncate":"START")");
  ASSERT_NE(end.body, start.body);
  for (const char* cut :
       {R"("truncate_prompt_tokens":-1)", R"("truncate":true)", R"("truncation":true)"}) {
    for (const char* field : {"truncation_side", "truncation_direction"}) {
      const auto at = [&](const char* side) {
        return embed(absl::StrCat(cut, ",\"", field, "\":\"", side, "\"")).body;
      };
      EXPECT_EQ(at("left"), start.body) << cut;
      EXPECT_EQ(at("Left"), start.body) << cut;
      EXPECT_EQ(at("right"), end.body) << cut;
    }
  }
  EXPECT_EQ(embed(R"("truncation_side":"left")").code, 400) << "no cut";
  EXPECT_EQ(embed(R"("truncate":"START","truncation_side":"left")").body, start.body);
  for (const char* other : {R"("truncate":"END","truncation_side":"left")",
                            R"("truncate":"START","truncation_direction":"Right")"}) {
    EXPECT_THAT(embed(other).body, HasSubstr("names another side than truncate does")) << other;
  }
  EXPECT_THAT(embed(R"("truncate":true,"truncation_side":"both")").body,
              HasSubstr("truncation_side must be left or right"));
}

TEST_F(OpenAiTest, VoyagesFieldsAreReadWhereTheOthersAreNot) {
  const std::string cut = R"("input":"hello","dimensions":4)";
  EXPECT_EQ(Embed(R"("input":"hello","output_dimension":4)"), Embed(cut));
  EXPECT_EQ(Embed(cut + R"(,"output_dimension":8)"), Embed(cut));
  std::string text;
  for (int i = 0; i < 40; ++i) text += "hello ";
  const auto code = [&](const std::string& path, const std::string& fields) {
    return Post(path, absl::StrCat(R"({"model":"tiny","input":")", text, "\",", fields, "}")).code;
  };
  EXPECT_EQ(code("/v1/embeddings", R"("truncation":true)"), 200);
  EXPECT_EQ(code("/v1/embeddings", R"("truncation":true,"truncate":"NONE")"), 400);
  EXPECT_EQ(code("/embeddings", R"("truncation":false)"), 400);
  EXPECT_EQ(code("/embeddings", R"("user":"me")"), 200);
}

// An answer in the usual form would be read wrongly by a client that asked for another one.
TEST_F(OpenAiTest, OtherFormsOfAnswersAreRefusedByName) {
  struct Case {
    const char* field;
    std::vector<const char*> usual, others;  // JSON
  };
  const std::vector<const char*> floats = {R"("float")", R"(["float"])", "null"};
  const std::vector<const char*> numbers = {R"("int8")", R"("base64")", R"(["float","binary"])",
                                            "8"};
  for (const char* path : {"/v1/embeddings", "/embeddings"}) {
    const auto post = [&](const std::string& field, const std::string& value) {
      return Post(path, absl::StrCat(R"({"input":"hello",")", field, "\":", value, "}"));
    };
    const std::string usual = post("user", R"("me")").body;
    for (const Case& c :
         {Case{"output_dtype", floats, numbers}, Case{"embedding_type", floats, numbers},
          Case{"encoding_type", floats, numbers}, Case{"embedding_types", floats, numbers},
          Case{"embed_dtype", {R"("float32")"}, {R"("float16")", "32"}},
          Case{"endianness", {R"("native")", R"("little")"}, {R"("big")"}},
          Case{"return_multivector", {"false"}, {"true", "1"}},
          Case{"late_chunking", {"false"}, {"true"}},
          Case{"modality",
               {R"("text")", R"(["text","text"])"},
               {R"("image")", R"(["text","image"])"}}}) {
      for (const char* value : c.usual) EXPECT_EQ(post(c.field, value).body, usual) << c.field;
      for (const char* value : c.others) {
        const HttpAnswer answer = post(c.field, value);
        EXPECT_EQ(answer.code, 400) << c.field << " " << value;
        EXPECT_THAT(answer.body, HasSubstr(absl::StrCat(c.field, " must be ")));
      }
    }
  }
}

class OpenAiPromptsTest : public DoorsTest {
 protected:
  OpenAiPromptsTest() : DoorsTest(Options()) {}

  static InProcessServer::Options Options() {
    InProcessServer::Options options;
    options.write_model = [](const std::string& folder) {
      WriteTinyModel(folder);
      WriteFile(folder + "/config_sentence_transformers.json",
                R"({"prompts":{"query":"world ","usual":"hello "},"default_prompt_name":"usual"})");
    };
    return options;
  }

  std::string Embed(const std::string& input, const std::string& more = "") {
    const HttpAnswer answer = Post(kPath, absl::StrCat(R"({"input":)", input, more, "}"));
    EXPECT_EQ(answer.code, 200) << answer.body;
    return answer.body;
  }
};

// Azure's clients send text, query or document, those of OCI image.
TEST_F(OpenAiPromptsTest, OtherInputTypesHaveTheDefaultPrompt) {
  const std::string usual = Embed(R"("hello")");
  EXPECT_NE(Embed(R"("hello")", R"(,"input_type":"query")"), usual);
  EXPECT_EQ(Embed(R"("hello")", R"(,"input_type":"image")"), usual);
  EXPECT_EQ(Embed(R"("hello")", R"(,"input_type":"")"), usual);
}

// Jina's clients say what a text is by `task`, TEI's name a prompt.
TEST_F(OpenAiPromptsTest, ATaskOrANameChoosesThePrompt) {
  const std::string usual = Embed(R"("hello")");
  const std::string query = Embed(R"("hello")", R"(,"input_type":"query")");
  const std::string plain = Embed(R"("hello")", R"(,"input_type":"document")");
  EXPECT_NE(plain, usual);
  for (const char* task : {"retrieval.query", "code.query", "query"}) {
    EXPECT_EQ(Embed(R"("hello")", absl::StrCat(R"(,"task":")", task, "\"")), query) << task;
  }
  EXPECT_EQ(Embed(R"("hello")", R"(,"task":"retrieval.passage")"), plain);
  EXPECT_EQ(Embed(R"("hello")", R"(,"prompt_name":"query","task":null)"), query);
  EXPECT_EQ(Embed(R"("hello")", R"(,"prompt_name":"")"), plain);
  for (const char* task :
       {"text-matching", "separation", "classification", "clustering", "usual"}) {
    EXPECT_EQ(Embed(R"("hello")", absl::StrCat(R"(,"task":")", task, "\"")), usual) << task;
  }
  for (const auto& [fields, message] :
       {std::pair{R"("task":"embed")", "task must be a prompt"},
        {R"("task":"retrieval.document")", "task must be a prompt"},
        {R"("task":"passage")", "task must be a prompt"},
        {R"("prompt_name":"other")", "prompt_name is 'other'"},
        {R"("task":"query","input_type":"query")", "task and input_type exclude each other"},
        {R"("task":"query","prompt_name":"query")", "prompt_name and task exclude each other"}}) {
    const HttpAnswer answer = Post(kPath, absl::StrCat(R"({"input":"hello",)", fields, "}"));
    EXPECT_EQ(answer.code, 400) << fields;
    EXPECT_THAT(answer.body, HasSubstr(message)) << fields;
  }
}

TEST_F(OpenAiPromptsTest, TokenIdsHaveNoPromptWhateverTheirType) {
  for (const char* input : {"[2,4,3]", "[[2,4,3]]", R"(["hello",[2,4,3]])"}) {
    EXPECT_EQ(Embed(input, R"(,"input_type":"query")"), Embed(input)) << input;
    EXPECT_EQ(Embed(input, R"(,"task":"retrieval.query")"), Embed(input)) << input;
  }
}

TEST_F(OpenAiTest, ErrorsHaveOpenAisShape) {
  struct Case {
    const char* body;
    int code;
    const char* message;
  };
  for (const Case& c : {
           Case{"", 400, "not valid JSON"},
           Case{"[]", 400, "the body must be a JSON object, not an array"},
           Case{R"({"model":"","input":"x"})", 400, "model is missing"},
           Case{R"({"model":"nobody","input":"x"})", 404, "nobody"},
           Case{R"({"model":1,"input":"x"})", 400, "model must be a string, not an integer"},
           Case{R"({"model":"tiny"})", 400, "input is missing"},
           Case{R"({"model":"tiny","input":[]})", 400, "input is empty"},
           Case{R"({"model":"tiny","input":[[]]})", 400, "token_ids is empty"},
           Case{R"({"model":"tiny","input":{}})", 400, "input must be a string, an array"},
           Case{R"({"model":"tiny","input":[1,"x"]})", 400, "input[1] must be a token id"},
           Case{R"({"model":"tiny","input":["x",1]})", 400, "input[1] must be a string or"},
           Case{R"({"model":"tiny","input":[[1.5]]})", 400, "input[0][0] must be a token id"},
           Case{R"({"model":"tiny","input":[64]})", 400, "token_ids[0] is 64"},
           Case{R"({"model":"tiny","input":"x","dimensions":0})", 400, "dimensions is 0"},
           Case{R"({"model":"tiny","input":"x","dimensions":17})", 400, "cannot be cut to 17"},
           Case{R"({"model":"tiny","input":"x","dimensions":"8"})", 400, "dimensions must be"},
           Case{R"({"model":"tiny","input":"x","encoding_format":"f16"})", 400, "encoding_format"},
           Case{R"({"model":"tiny","input":"x","truncate_prompt_tokens":5})", 400, "must be -1"},
           Case{R"({"model":"tiny","input":"x","add_special_tokens":false})", 400, "must be true"},
           Case{R"({"model":"tiny","input":"x","truncate":"MIDDLE"})", 400, "truncate must be"},
           Case{R"({"model":"tiny","input":"x","input_type":1})", 400, "input_type must be"},
           Case{R"({"model":"tiny","input":"x","output_dimension":17})", 400,
                "cannot be cut to 17"},
       }) {
    const HttpAnswer answer = Post(kPath, c.body);
    const nlohmann::json json = Json(answer);
    EXPECT_EQ(answer.code, c.code) << c.body;
    ASSERT_TRUE(json.contains("error")) << answer.body;
    EXPECT_THAT(json["error"]["message"].get<std::string>(), HasSubstr(c.message)) << c.body;
    EXPECT_EQ(json["error"]["type"], "invalid_request_error");
    EXPECT_TRUE(json["error"].contains("code") && json["error"].contains("param"));
  }
}

// As clients of text-embeddings-inference ask.
TEST_F(OpenAiTest, ARequestMayLeaveTheModelToTheServerThatHasOne) {
  const HttpAnswer named = Post(kPath, R"({"model":"tiny","input":"hello"})");
  ASSERT_EQ(named.code, 200) << named.body;
  EXPECT_EQ(Post(kPath, R"({"input":"hello"})").body, named.body);
  EXPECT_EQ(Post(kPath, R"({"input":"hello"})", "X-Model: nobody\r\n").code, 404);
  EXPECT_EQ(Post(kPath, R"({"model":"tiny","input":"hello"})", "X-Model: nobody\r\n").code, 200);
}

class OpenAiOfTwoTest : public DoorsTest {
 protected:
  OpenAiOfTwoTest() : DoorsTest({.broken_models = {"other"}}) {}
};

TEST_F(OpenAiOfTwoTest, ARequestNamesItsModel) {
  const HttpAnswer unnamed = Post(kPath, R"({"input":"hello"})");
  EXPECT_EQ(unnamed.code, 400);
  EXPECT_THAT(unnamed.body,
              HasSubstr("the server has 2 models, of which 2 may answer this: name one in the "
                        "header x-model, or in the field model\""));
  EXPECT_EQ(Post(kPath, R"({"input":"hello"})", "X-Model: tiny\r\n").code, 200);
}

TEST_F(OpenAiTest, ListsModels) {
  const nlohmann::json list = Json(Get("/v1/models"));
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "tiny");
  EXPECT_EQ(list["data"][0]["object"], "model");
  EXPECT_EQ(Json(Get("/v1/models/tiny")), list["data"][0]);
  const HttpAnswer none = Get("/v1/models/nobody");
  EXPECT_EQ(none.code, 404);
  EXPECT_EQ(Json(none)["error"]["code"], "model_not_found");
}

}  // namespace
}  // namespace attendant
