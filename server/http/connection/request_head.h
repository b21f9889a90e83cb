// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/http_types.h"

namespace attendant {

// The first line of a request, and its headers without the trailers behind its body.
class RequestHead {
 public:
  struct Line {
    std::string method;
    std::string target;
    bool http_1_0 = false;
  };
  explicit RequestHead(Line line) : line_(std::move(line)) {}

  const std::string& method() const { return line_.method; }
  const std::string& target() const { return line_.target; }

  void Add(absl::string_view name, absl::string_view value);

  size_t size() const { return fields_.size(); }

  // The value of a header, by its name in lower case. Nothing unless it was sent exactly once.
  std::optional<absl::string_view> Find(absl::string_view name) const;

  bool Repeats(absl::string_view name) const { return Count(name) > 1; }

  // INVALID_ARGUMENT, 400, where one of the headers `single`, in lower case, comes twice, or the
  // one that says how to read the body: nothing says which one counts.
  std::optional<HttpFailure> RepeatedHeader(std::span<const absl::string_view> single) const;

  // True if there is one valid Host, or none with HTTP/1.0, which lacks it. Else the request must
  // be refused, because a server in between could have taken another Host (RFC 9112, 3.2).
  bool HasFitHost() const;

  // Nothing for a body that comes by its length or in chunks. Beast reads one of any other coding
  // as if the request had none: the body would count as the next request.
  std::optional<HttpFailure> UnfitTransfer() const;

  // True if the client waits for "100 Continue". False with HTTP/1.0, which lacks it.
  bool WaitsForContinue() const;

 private:
  size_t Count(absl::string_view name) const;

  Line line_;
  std::vector<std::pair<std::string, std::string>> fields_;  // names in lower case
};

}  // namespace attendant
