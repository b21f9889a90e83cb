// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_name.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "server/models/attention_model.h"

namespace attendant {
namespace {

constexpr size_t kMaxNameBytes = 128;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

bool HasReservedEnding(absl::string_view name) {
  return std::any_of(kReservedEndings.begin(), kReservedEndings.end(),
                     [name](absl::string_view ending) { return absl::EndsWith(name, ending); });
}

}  // namespace

absl::Status CheckModelName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model name ", Quote(name), " of ", name.size(), " bytes cannot be served: use 1 to ",
        kMaxNameBytes, " letters, digits, '_', '-' and '.', and not '.' first"));
  }
  if (name == kAttentionName) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model name ", Quote(name),
        " cannot be served: the attention operators that need no model are called so"));
  }
  if (HasReservedEnding(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model name ", Quote(name),
        " cannot be served: to KServe clients a model's other outputs have the names ",
        absl::StrJoin(kReservedEndings, ", ", [](std::string* out, absl::string_view ending) {
          absl::StrAppend(out, "NAME", ending);
        })));
  }
  return absl::OkStatus();
}

}  // namespace attendant
