// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/page.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "client/load/results/report_json.h"

namespace attendant::client {
namespace {

absl::string_view PageFile(absl::string_view name) {
  for (const EmbeddedFile& file : LoadPageFiles()) {
    if (file.name == name) return file.bytes;
  }
  return "";
}

}  // namespace

std::string MakePage(const std::vector<LoadResult>& results, const std::string& summary) {
  nlohmann::ordered_json data{{"summary", summary}, {"runs", nlohmann::ordered_json::array()}};
  for (const LoadResult& result : results) data["runs"].push_back(ReportToJson(result));
  using ErrorHandler = nlohmann::ordered_json::error_handler_t;
  // Inside a script element, only "<" could end the data.
  const std::string json =
      absl::StrReplaceAll(data.dump(-1, ' ', false, ErrorHandler::replace), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(PageFile("page.html"), {{"/*STYLE*/", PageFile("page.css")},
                                                     {"/*SCRIPT*/", PageFile("page.js")},
                                                     {"/*DATA*/", json}});
}

}  // namespace attendant::client
