// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/json/json_view.h"
#include "server/requests/request_message.h"

namespace attendant {

// The body of an HTTP request, as it came.
struct HttpBody {
  std::string bytes;
  bool gzip = false;
  int64_t max_bytes = 0;  // inflated

  int64_t most_text() const { return gzip ? max_bytes : static_cast<int64_t>(bytes.size()); }
};

// INVALID_ARGUMENT for gzip that is damaged or inflates to more than max_bytes.
absl::StatusOr<int64_t> InflatedBytes(const HttpBody& body);
// Takes the body, and inflates it. REQUIRES: InflatedBytes returned `bytes`.
absl::StatusOr<std::string> TakeText(HttpBody& body, int64_t bytes);

// RequestMessage::Scan of a body that is JSON. `text_bytes`: its size, inflated.
absl::StatusOr<int64_t> ScanJsonBody(const HttpBody& body, int64_t& text_bytes);

// The model of a JSON message beside its field `model`.
struct JsonMessageModel {
  std::string name = {};          // of the request's path or headers: the field does not count
  absl::string_view beside = {};  // the field counts only in a message with this one; empty: always
  // The model of a message whose field is not there, or does not count.
  std::function<absl::StatusOr<std::string>()> otherwise = {};
};

// A JSON object as the message of a request.
class JsonMessage final : public RequestMessage {
 public:
  explicit JsonMessage(HttpBody body, JsonMessageModel model = {});

  int64_t bytes() const override { return wire_bytes_; }
  int64_t parse_bytes() const override { return body_.most_text(); }
  absl::StatusOr<int64_t> Scan() override;
  absl::Status Parse() override;
  const std::string& id() const override { return id_; }
  const std::string& model() const override { return model_; }

  // REQUIRES: Parse returned OK.
  JsonView root() const { return json_->root(); }

 private:
  HttpBody body_;
  const int64_t wire_bytes_;
  int64_t text_bytes_ = 0;
  std::optional<JsonText> json_;
  const std::string id_;  // x-request-id names the request
  std::string model_;
  const absl::string_view beside_;
  const std::function<absl::StatusOr<std::string>()> otherwise_;
};

}  // namespace attendant
