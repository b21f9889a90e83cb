// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/http_types.h"

namespace attendant {

// The headers of a request, without the trailers behind its body.
class RequestHead {
 public:
  RequestHead() = default;
  explicit RequestHead(bool http_1_0) : http_1_0_(http_1_0) {}

  void Add(absl::string_view name, absl::string_view value);

  size_t size() const { return fields_.size(); }

  // The value of a header, by its name in lower case. Nothing unless it was sent exactly once.
  std::optional<absl::string_view> Find(absl::string_view name) const;

  // Nothing for a body that comes by its length or in chunks. Beast reads one of any other coding
  // as if the request had none: the body would count as the next request.
  std::optional<HttpFailure> UnfitTransfer() const;

  // True if the client waits for "100 Continue". False with HTTP/1.0, which lacks it.
  bool WaitsForContinue() const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;  // names in lower case
  bool http_1_0_ = false;
};

}  // namespace attendant
