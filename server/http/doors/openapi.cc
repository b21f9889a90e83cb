// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/openapi.h"

#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/json/json_writer.h"

namespace attendant {
namespace {

std::string QuotedJson(absl::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

// Its {words}.
std::string Parameters(const HttpRoute& route) {
  std::string json;
  for (absl::string_view segment : absl::StrSplit(route.path, '/')) {
    if (!absl::StartsWith(segment, "{")) continue;
    absl::StrAppend(&json, json.empty() ? "" : ",",
                    "{\"name\":", QuotedJson(segment.substr(1, segment.size() - 2)),
                    R"(,"in":"path","required":true,"schema":{"type":"string"}})");
  }
  return json;
}

std::string Content(absl::string_view schema) {
  return absl::StrCat(R"("content":{"application/json":{"schema":)", schema, "}}");
}

void AppendOperation(const HttpRoute& route, std::string& json) {
  absl::StrAppend(&json, QuotedJson(absl::AsciiStrToLower(route.method)),
                  ":{\"summary\":", QuotedJson(route.doc.summary),
                  ",\"operationId\":", QuotedJson(route.call.name), ",\"parameters\":[",
                  Parameters(route), "]");
  if (!route.doc.request.empty()) {
    absl::StrAppend(&json, R"(,"requestBody":{"required":true,)", Content(route.doc.request), "}");
  }
  if (route.call.group != MethodGroup::kOpen) json += R"(,"security":[{"key":[]}])";
  absl::StrAppend(&json, R"(,"responses":{"200":{"description":"the answer")",
                  route.doc.response.empty() ? "" : ",",
                  route.doc.response.empty() ? "" : Content(route.doc.response),
                  R"(},"default":{"description":"an error, in the protocol's own shape",)",
                  Content(R"({"type":"object"})"), "}}}");
}

}  // namespace

std::string OpenApiDocument(std::span<const HttpRoute> routes, absl::string_view version) {
  std::map<absl::string_view, std::vector<const HttpRoute*>> paths;
  for (const HttpRoute& route : routes) {
    if (!route.doc.summary.empty()) paths[route.path].push_back(&route);
  }
  std::string json = absl::StrCat(R"({"openapi":"3.1.0","info":{"title":"Attendant","version":)",
                                  QuotedJson(version), R"(},"paths":{)");
  for (const auto& [path, operations] : paths) {
    absl::StrAppend(&json, json.back() == '{' ? "" : ",", QuotedJson(path), ":{");
    for (const HttpRoute* route : operations) {
      if (route != operations.front()) json.push_back(',');
      AppendOperation(*route, json);
    }
    json.push_back('}');
  }
  json += R"(},"components":{"securitySchemes":{"key":{"type":"http","scheme":"bearer",)"
          R"("description":"an API key, where the server asks for one"}}}})";
  return json;
}

}  // namespace attendant
