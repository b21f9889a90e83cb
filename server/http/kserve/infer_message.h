// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/http/doors/json_message.h"
#include "server/http/json/json_view.h"
#include "server/requests/request_message.h"

namespace attendant {

// The form of the answer to an inference request.
struct InferForm {
  bool binary = false;                                 // outputs come behind the JSON, as bytes
  std::map<std::string, bool, std::less<>> outputs{};  // of those that the request names

  bool IsBinary(const std::string& output) const;
  bool all_binary() const;
};

// The body of an inference request: JSON, and with Inference-Header-Content-Length tensors as bytes
// behind it. Becomes the message that gRPC has, with raw contents for every input.
class InferMessage final : public RequestMessage {
 public:
  // The values from the path and the headers.
  struct Head {
    std::string model, version;
    std::optional<int64_t> json_bytes;  // of the body; without: all of it
    int priority = 0;                   // where the body has no such parameter
    int64_t max_sequences = 0;          // of the request
  };
  // `form` is filled by Parse, and outlives the message.
  InferMessage(HttpBody body, Head head, InferForm& form);

  int64_t bytes() const override { return wire_bytes_; }
  int64_t parse_bytes() const override { return body_.most_text(); }
  absl::StatusOr<int64_t> Scan() override;
  absl::Status Parse() override;
  const std::string& id() const override { return request_.id(); }
  const std::string& model() const override { return head_.model; }

  // REQUIRES: Parse returned OK.
  const inference::ModelInferRequest& request() const { return request_; }
  const InferForm& form() const { return form_; }

 private:
  absl::Status ReadFields(JsonView root);
  absl::Status ReadInput(JsonView input);
  absl::Status ReadOutput(JsonView output);
  absl::StatusOr<std::string> ReadRaw(JsonView input,
                                      const inference::ModelInferRequest::InferInputTensor& tensor);

  HttpBody body_;
  const int64_t wire_bytes_;
  const Head head_;
  InferForm& form_;
  int64_t text_bytes_ = 0;
  absl::string_view binary_;  // not taken yet by an input
  inference::ModelInferRequest request_;
};

}  // namespace attendant
