// SPDX-License-Identifier: Apache-2.0
// An answer counts in the budget with all that is in it: also names of labels, and texts that it
// sends back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/server/http/http_client.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

// Of a server whose model has these labels.
HttpAnswer Ask(const std::vector<std::string>& labels, int64_t max_pending_response_bytes,
               const std::string& path, const std::string& body) {
  InProcessServer::Options options;
  options.write_model = [&labels](const std::string& folder) {
    WriteTinyClassifier(folder, labels);
  };
  options.flags.memory.max_pending_response_bytes = max_pending_response_bytes;
  InProcessServer server(options);
  server.AwaitReady();
  return HttpPost(server.http_port(), path, body);
}

// The answer to such a request is not begun in a budget that has no room for it, and fits a budget
// of twice its size.
void ExpectAllOfItCounts(const std::vector<std::string>& labels, const std::string& path,
                         const std::string& body) {
  const HttpAnswer answer = Ask(labels, int64_t{1} << 30, path, body);
  ASSERT_EQ(answer.code, 200) << answer.body;
  const auto bytes = static_cast<int64_t>(answer.body.size());
  const HttpAnswer refused = Ask(labels, bytes - 1, path, body);
  EXPECT_EQ(refused.code, 400) << path << ": " << refused.body.size() << " bytes";
  EXPECT_THAT(refused.body, testing::HasSubstr("--max_pending_response_bytes"));
  EXPECT_EQ(Ask(labels, 2 * bytes, path, body).code, 200) << path;
}

std::string EightTimes(const std::string& json) {
  return absl::StrJoin(std::vector<std::string>(8, json), ",");
}

TEST(AnswerMemoryTest, TheLabelsOfASmallRequest) {
  std::vector<std::string> labels;
  for (int i = 0; i < 200; ++i) labels.push_back(absl::StrCat(std::string(200, 'a'), i));
  const std::string body = absl::StrCat(R"({"inputs":[)", EightTimes(R"(["hello"])"), "]}");
  ExpectAllOfItCounts(labels, "/predict", body);
  ExpectAllOfItCounts(labels, "/", body);
}

TEST(AnswerMemoryTest, TextsThatAreSentBack) {
  const std::string texts = EightTimes(absl::StrCat("\"hello ", std::string(4000, 'x'), "\""));
  ExpectAllOfItCounts(
      {"yes"}, "/rerank",
      absl::StrCat(R"({"query":"hello","return_text":true,"texts":[)", texts, "]}"));
  for (const char* path : {"/v1/rerank", "/v2/rerank"}) {
    ExpectAllOfItCounts({"yes"}, path,
                        absl::StrCat(R"({"model":"tiny","query":"hello","return_documents":true,)",
                                     R"("documents":[)", texts, "]}"));
  }
}

TEST(AnswerMemoryTest, TheirEscapes) {
  std::string text = "\"hello";
  for (int i = 0; i < 1000; ++i) text += "\\u0001";
  text += '"';
  ExpectAllOfItCounts(
      {"yes"}, "/rerank",
      absl::StrCat(R"({"query":"hello","return_text":true,"texts":[)", EightTimes(text), "]}"));
}

}  // namespace
}  // namespace attendant
