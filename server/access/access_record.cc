// SPDX-License-Identifier: Apache-2.0
#include "server/access/access_record.h"

#include <cmath>

#include "nlohmann/json.hpp"

namespace attendant {
namespace {

using Json = nlohmann::ordered_json;

double Milliseconds(absl::Duration duration) {
  return std::round(absl::ToDoubleMicroseconds(duration)) / 1000;
}

void AddUnlessEmpty(const char* name, const std::string& text, Json& line) {
  if (!text.empty()) line[name] = text;
}

}  // namespace

std::string ToJsonLine(const AccessRecord& record) {
  Json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", record.time, absl::UTCTimeZone());
  AddUnlessEmpty("request_id", record.request_id, line);
  AddUnlessEmpty("trace_id", record.trace_id, line);
  AddUnlessEmpty("span_id", record.span_id, line);
  line["peer"] = record.peer;
  AddUnlessEmpty("key", record.key, line);
  line["method"] = record.method;
  AddUnlessEmpty("model", record.model, line);
  AddUnlessEmpty("id", record.message_id, line);
  line["code"] = absl::StatusCodeToString(record.code);
  line["sequences"] = record.sequences;
  line["tokens"] = record.tokens;
  line["bytes_in"] = record.request_bytes;
  line["bytes_out"] = record.response_bytes;
  line["ms"] = {{"total", Milliseconds(record.total)},
                {"tokenize", Milliseconds(record.tokenize)},
                {"queue", Milliseconds(record.queue)},
                {"compute", Milliseconds(record.compute)},
                {"serialize", Milliseconds(record.serialize)}};
  return line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace attendant
