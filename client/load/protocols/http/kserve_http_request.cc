// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/http/kserve_http_request.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/load/protocols/http/http_load.h"

namespace attendant::client {
namespace {

template <typename T>
std::vector<T> ValuesOf(const std::string& raw) {
  std::vector<T> values(raw.size() / sizeof(T));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
  return values;
}

// Each with its length before it.
std::vector<std::string> StringsOf(const std::string& raw) {
  std::vector<std::string> strings;
  for (size_t at = 0; at < raw.size(); at += strings.back().size()) {
    uint32_t length = 0;
    std::memcpy(&length, raw.data() + at, sizeof(length));
    at += sizeof(length);
    strings.push_back(raw.substr(at, length));
  }
  return strings;
}

nlohmann::json DataOf(const std::string& datatype, const std::string& raw) {
  if (datatype == "BYTES") return StringsOf(raw);
  if (datatype == "INT64") return ValuesOf<int64_t>(raw);
  if (datatype == "INT32") return ValuesOf<int32_t>(raw);
  return ValuesOf<float>(raw);
}

}  // namespace

HttpRequest ToKserveHttpRequest(const KserveRequest& request, bool json_tensors) {
  nlohmann::json body{{"inputs", nlohmann::json::array()}};
  std::string bytes;
  for (int i = 0; i < request.proto.inputs_size(); ++i) {
    const auto& input = request.proto.inputs(i);
    const std::string& raw = request.proto.raw_input_contents(i);
    nlohmann::json tensor{
        {"name", input.name()},
        {"datatype", input.datatype()},
        {"shape", std::vector<int64_t>(input.shape().begin(), input.shape().end())}};
    if (json_tensors) {
      tensor["data"] = DataOf(input.datatype(), raw);
    } else {
      tensor["parameters"]["binary_data_size"] = raw.size();
      bytes += raw;
    }
    body["inputs"].push_back(std::move(tensor));
  }
  HttpRequest made{.tokens = request.tokens};
  if (json_tensors) {
    made.body = ToBody(body);
    return made;
  }
  body["parameters"]["binary_data_output"] = true;
  const std::string text = ToBody(body);
  made.headers = absl::StrCat("Content-Type: application/octet-stream\r\n",
                              "Inference-Header-Content-Length: ", text.size(), "\r\n");
  made.body = text + bytes;
  return made;
}

}  // namespace attendant::client
