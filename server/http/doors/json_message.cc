// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/json_message.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/gzip.h"

namespace attendant {
absl::StatusOr<int64_t> InflatedBytes(const HttpBody& body) {
  if (!body.gzip) return static_cast<int64_t>(body.bytes.size());
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t bytes, GunzippedBytes(body.bytes, body.max_bytes));
  if (bytes <= body.max_bytes) return bytes;
  return absl::InvalidArgumentError(absl::StrCat("the body inflates to at least ", bytes,
                                                 " bytes, the limit is ", body.max_bytes));
}

absl::StatusOr<std::string> TakeText(HttpBody& body, int64_t bytes) {
  std::string taken = std::exchange(body.bytes, std::string());
  if (body.gzip) return Gunzip(taken, bytes);
  return taken;
}

JsonMessage::JsonMessage(HttpBody body, JsonMessageModel model)
    : body_(std::move(body)),
      wire_bytes_(static_cast<int64_t>(body_.bytes.size())),
      model_(std::move(model.name)),
      beside_(model.beside),
      otherwise_(std::move(model.otherwise)) {}

absl::StatusOr<int64_t> ScanJsonBody(const HttpBody& body, int64_t& text_bytes) {
  ATTENDANT_ASSIGN_OR_RETURN(text_bytes, InflatedBytes(body));
  if (!body.gzip) return JsonText::MemoryBytes(body.bytes);
  return text_bytes + JsonText::MostMemoryBytes(text_bytes);
}

absl::StatusOr<int64_t> JsonMessage::Scan() { return ScanJsonBody(body_, text_bytes_); }

absl::Status JsonMessage::Parse() {
  ATTENDANT_ASSIGN_OR_RETURN(std::string text, TakeText(body_, text_bytes_));
  ATTENDANT_ASSIGN_OR_RETURN(json_, JsonText::Parse(std::move(text)));
  if (root().kind() != JsonView::Kind::kObject) {
    return absl::InvalidArgumentError(
        absl::StrCat("the body must be a JSON object, not ", root().kind_name()));
  }
  if (!model_.empty()) return absl::OkStatus();
  const bool counts = beside_.empty() || root().Find(beside_).has_value();
  if (counts) ATTENDANT_RETURN_IF_ERROR(root().Read("model", model_));
  if (otherwise_ != nullptr && !(counts && root().Find("model").has_value())) {
    ATTENDANT_ASSIGN_OR_RETURN(model_, otherwise_());
  }
  model_.resize(std::min(model_.size(), kMaxIdBytes));  // a longer name belongs to no model
  return absl::OkStatus();
}

}  // namespace attendant
