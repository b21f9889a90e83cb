// SPDX-License-Identifier: Apache-2.0
// Inputs of http_fuzz.cc.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/http/gzip.h"
#include "tests/fuzz/seeds.h"

namespace attendant {
namespace {

constexpr size_t kLarge = 60'000;

struct Path {
  std::string line;  // "POST /embed"
  std::string body;
};

const std::vector<Path>& GoodRequests() {
  static const auto& requests = *new std::vector<Path>{
      {"POST /attendant.v1.Encoder/Encode",
       R"({"model":"tiny","sequences":{"sequences":[{"text":"hello"},{"ids":{"tokenIds":[2,4,3]}}]},)"
       R"("outputs":{"tokenStrings":true,"attentionWeights":{"layers":[0]}}})"},
      {"POST /attendant.v1.Encoder/ListModels", "{}"},
      {"POST /attendant.v1.Attention/Attend",
       R"({"query":{"dtype":"DTYPE_F32","shape":[1,1,2],"data":"AAAAAAAAAAA="},"causal":true})"},
      {"POST /attendant.v1.Attention/ListAttention", "{}"},
      {"POST /", R"({"inputs":{"source_sentence":"hello","sentences":["world"]}})"},
      {"POST /decode", R"({"ids":[[2,4,5,3]],"skip_special_tokens":true})"},
      {"POST /embed", R"({"inputs":["hello","world"],"truncate":true,"normalize":false})"},
      {"POST /embed_all", R"({"inputs":"hello","truncation_direction":"Left"})"},
      {"POST /embed_sparse", R"({"inputs":"hello","top_k":3})"},
      {"POST /pooling", R"({"model":"tiny","input":[[2,4,3]],"task":"embed"})"},
      {"POST /predict", R"({"inputs":[["hello"],["hello","world"]],"raw_scores":true})"},
      {"POST /rerank", R"({"query":"hello","texts":["world","x"],"return_text":true})"},
      {"POST /score", R"({"model":"judge","text_1":"hello","text_2":["world","x"]})"},
      {"POST /similarity",
       R"({"inputs":{"source_sentence":"hello","sentences":["world","hello"]}})"},
      {"POST /tokenize", R"({"inputs":["hello world",""],"add_special_tokens":false})"},
      {"POST /v1/embeddings",
       R"({"model":"tiny","input":["hello",""],"encoding_format":"base64","dimensions":8})"},
      {"POST /v1/embed", R"({"model":"tiny","texts":["hello"],"embedding_types":["int8"]})"},
      {"POST /v2/embed",
       R"({"model":"tiny","inputs":[{"content":[{"type":"text","text":"hello"}]}],)"
       R"("input_type":"search_query","embedding_types":["float","ubinary"],"truncate":"END"})"},
      {"POST /v1/ranking",
       R"({"model":"judge","query":{"text":"hello"},"passages":[{"text":"x"}]})"},
      {"POST /v1/rerank", R"({"model":"judge","query":"hello","documents":["x",{"text":"y"}]})"},
      {"POST /v2/rerank", R"({"model":"judge","query":"hello","documents":["x"],"top_n":1})"},
      {"POST /v2/models/tiny/infer",
       R"({"id":"seven","inputs":[{"name":"text","shape":[2,1],"datatype":"BYTES",)"
       R"("data":["hello","world"]}],"outputs":[{"name":"sentence_embedding"}]})"},
      {"POST /v2/models/tiny.ids/versions/1/infer",
       R"({"inputs":[{"name":"input_ids","shape":[1,3],"datatype":"INT64","data":[[2,4,3]]}]})"},
  };
  return requests;
}

std::string Repeated(const std::string& unit, size_t bytes = kLarge) {
  std::string all;
  while (all.size() < bytes) all += unit;
  return all;
}

// JSON that has broken other servers, for any path that takes JSON.
std::vector<std::pair<std::string, std::string>> HostileJson() {
  return {{"nothing", ""},
          {"deep_arrays", Repeated("[")},
          {"deep_objects", Repeated(R"({"inputs":)")},
          {"empty_texts", absl::StrCat(R"({"inputs":[)", Repeated(R"("",)"), R"(""]})")},
          {"numbers", absl::StrCat(R"({"model":"tiny","input":[)", Repeated("4,"), "4]}")},
          {"huge_number", R"({"inputs":1e999,"dimensions":-9223372036854775809,"top_n":1e-400})"},
          {"surrogate", R"({"inputs":"\ud800","query":"\udc00\ud800","model":"\u0000"})"},
          {"not_utf8", "{\"inputs\":\"\xc3\x28\",\"model\":\"\xff\"}"},
          {"twice", R"({"inputs":"a","inputs":["b"],"inputs":{}})"},
          {"behind", R"({"inputs":"hello"}{"inputs":"hello"})"},
          {"null", R"({"inputs":null,"input":null,"model":null,"query":null,"texts":null})"}};
}

std::string WithHead(const std::string& line, const std::string& head, const std::string& body) {
  return absl::StrCat(line, "\n", head, std::string(1, '\0'), body);
}

void ConnectionSeeds(const Seeds& seeds) {
  const std::string body = R"({"inputs":"hello"})";
  const std::string post = "POST /embed HTTP/1.1\r\nHost: localhost\r\n";
  const std::string length = absl::StrCat("Content-Length: ", body.size(), "\r\n");
  const auto add = [&](const std::string& name, const std::string& bytes) {
    seeds.Add("connection_" + name, "\n" + bytes);
  };
  add("good", absl::StrCat(post, length, "\r\n", body));
  add("two", Repeated(absl::StrCat(post, length, "\r\n", body), 300));
  add("chunked", absl::StrCat(post, "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\n{\"inp\r\nd\r\n",
                              "uts\":\"hello\"}\r\n0\r\nA: b\r\n\r\n"));
  add("chunk_of_exabytes",
      absl::StrCat(post, "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n"));
  add("both_lengths", absl::StrCat(post, length, "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
  add("two_lengths", absl::StrCat(post, length, "Content-Length: 1\r\n\r\n", body));
  add("negative_length", absl::StrCat(post, "Content-Length: -1\r\n\r\n", body));
  add("exabytes", absl::StrCat(post, "Content-Length: 18446744073709551615\r\n\r\n", body));
  add("cut", absl::StrCat(post, length, "\r\n", body.substr(1)));
  add("headers", absl::StrCat(post, Repeated("A: b\r\n", 3000), "\r\n"));
  add("long_header", absl::StrCat(post, "A: ", Repeated("b"), "\r\n\r\n"));
  add("old", "GET /healthz HTTP/1.0\r\n\r\n");
  add("no_host", "GET /healthz HTTP/1.1\r\n\r\n");
  add("whole_uri", "GET http://localhost/v%32?a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  add("options", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
  add("http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  add("tls", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  add("folded", "GET /v2 HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n");
}

std::string NameOf(const std::string& line) {
  return absl::StrReplaceAll(line.substr(line.find('/') + 1), {{"/", "_"}});
}

void BodySeeds(const Seeds& seeds) {
  for (const auto& [line, body] : GoodRequests()) {
    seeds.Add(NameOf(line) + "_good", WithHead(line, "x-model: tiny\r\n", body));
    seeds.Add(NameOf(line) + "_gzip",
              WithHead(line, "Content-Encoding: gzip\r\nAccept-Encoding: gzip\r\n", Gzip(body)));
  }
  for (const auto& [kind, body] : HostileJson()) {
    for (const char* line : {"POST /", "POST /v1/embeddings", "POST /v2/rerank", "POST /score",
                             "POST /v2/models/tiny/infer", "POST /attendant.v1.Encoder/Encode"}) {
      seeds.Add(absl::StrCat(NameOf(line), "_", kind), WithHead(line, "", body));
    }
  }
}

// A tensor behind the JSON.
void InferSeeds(const Seeds& seeds) {
  const std::string infer =
      R"({"inputs":[{"name":"text","shape":[1,1],"datatype":"BYTES","parameters":{"binary_data_size":9}}]})";
  const std::string text("\5\0\0\0hello", 9);
  for (const auto& [kind, bytes] :
       {std::pair{"binary", infer.size()}, std::pair{"cut", infer.size() + 1}}) {
    seeds.Add(
        absl::StrCat("infer_", kind),
        WithHead("POST /v2/models/tiny/infer",
                 absl::StrCat("Inference-Header-Content-Length: ", bytes, "\r\n"), infer + text));
  }
}

void PageSeeds(const Seeds& seeds) {
  for (const char* path : {"/",
                           "/console/live",
                           "/health",
                           "/info",
                           "/ping",
                           "/v1/models",
                           "/v1/models/tiny",
                           "/v2",
                           "/v2/health/live",
                           "/v2/health/ready",
                           "/v2/models/stats",
                           "/v2/models/tiny",
                           "/v2/models/tiny.ids/config",
                           "/v2/models/tiny/ready",
                           "/v2/models/tiny/versions/1/stats",
                           "/metrics",
                           "/healthz",
                           "/readyz",
                           "/connections",
                           "/openapi.json",
                           "/v2/models/%00/config",
                           "/../etc/passwd",
                           "/v1/models?x=y#z"}) {
    seeds.Add("get" + absl::StrReplaceAll(path, {{"/", "_"}}),
              WithHead(absl::StrCat("GET ", path), "", ""));
  }
}

void HeadSeeds(const Seeds& seeds) {
  const std::string embed = R"({"inputs":"hello"})";
  for (const auto& [kind, head] : std::vector<std::pair<std::string, std::string>>{
           {"expect", "Expect: 100-continue\r\n"},
           {"timeout", "x-request-timeout-ms: 1\r\n"},
           {"odd_timeout", "x-request-timeout-ms: 1e3\r\nx-request-priority: 9999999999\r\n"},
           {"trace", "traceparent: 00-00000000000000000000000000000000-0000000000000000-00\r\n"},
           {"request_id", absl::StrCat("x-request-id: ", Repeated("x", 300), "\r\n")},
           {"key", "Authorization: Bearer \r\nx-api-key: a\r\n"},
           {"foreign", "Origin: https://example.com\r\n"},
           {"coding", "Content-Encoding: br\r\nAccept-Encoding: gzip;q=0, *;q=2\r\n"},
           {"not_gzip", "Content-Encoding: gzip\r\n"},
           {"twice", "x-model: tiny\r\nx-model: tiny\r\n"},
           {"half_line", "x-model: tiny"},
           {"upgrade", "Connection: upgrade\r\nUpgrade: h2c\r\n"}}) {
    seeds.Add("head_" + kind, WithHead("POST /embed", head, embed));
  }
  seeds.Add("head_members", WithHead("POST /embed", "Content-Encoding: x-gzip\r\n",
                                     Gzip(embed.substr(0, 3)) + Gzip("") + Gzip(embed.substr(3))));
  // Of a member that says it inflates to 4 GiB.
  std::string bomb = Gzip(Repeated("a", 1 << 16));
  for (size_t i = bomb.size() - 4; i < bomb.size(); ++i) bomb[i] = '\xff';
  seeds.Add("head_bomb", WithHead("POST /embed", "Content-Encoding: gzip\r\n", bomb));
}

}  // namespace

void HttpSeeds(const Seeds& seeds) {
  BodySeeds(seeds);
  InferSeeds(seeds);
  PageSeeds(seeds);
  HeadSeeds(seeds);
  ConnectionSeeds(seeds);
}

}  // namespace attendant
