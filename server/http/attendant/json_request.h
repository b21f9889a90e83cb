// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/json_message.h"
#include "server/http/json/json_view.h"
#include "server/http/proto_json/proto_reader.h"
#include "server/protocols/typed_message.h"
#include "server/requests/request_message.h"

namespace attendant {

// A message of type M, which has an id, a model and a priority, from a JSON body.
template <typename M>
class JsonRequest final : public TypedMessage<M> {
 public:
  // `priority`: of a message that has none.
  JsonRequest(HttpBody body, int priority)
      : body_(std::move(body)),
        wire_bytes_(static_cast<int64_t>(body_.bytes.size())),
        priority_(priority) {}

  int64_t bytes() const override { return wire_bytes_; }
  int64_t parse_bytes() const override { return body_.most_text(); }
  absl::StatusOr<int64_t> Scan() override { return ScanJsonBody(body_, text_bytes_); }
  absl::Status Parse() override {
    ATTENDANT_ASSIGN_OR_RETURN(std::string text, TakeText(body_, text_bytes_));
    ATTENDANT_ASSIGN_OR_RETURN(const JsonText json, JsonText::Parse(std::move(text)));
    ATTENDANT_RETURN_IF_ERROR(ReadProtoJson(json.root(), message_));
    if (message_.priority() == 0) message_.set_priority(priority_);
    model_ = message_.model().substr(0, kMaxIdBytes);  // a longer name belongs to no model
    if (message_.id().size() <= kMaxIdBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("id has ", message_.id().size(), " bytes, the limit is ", kMaxIdBytes));
  }
  const std::string& id() const override {
    return message_.id().size() <= kMaxIdBytes ? message_.id() : no_id_;
  }
  const std::string& model() const override { return model_; }
  const M& message() const override { return message_; }
  bool wants_json() const override { return true; }

 private:
  HttpBody body_;
  const int64_t wire_bytes_;
  const int priority_;
  int64_t text_bytes_ = 0;
  M message_;
  std::string model_;
  const std::string no_id_;
};

}  // namespace attendant
