// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace attendant {

std::string Quote(absl::string_view text, char mark, size_t max_bytes) {
  const std::string edge(1, mark);
  return absl::StrCat(edge, absl::CHexEscape(text.substr(0, max_bytes)),
                      text.size() > max_bytes ? "..." : "", edge);
}

}  // namespace attendant
