// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/answer_form.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr absl::string_view kFloatFields[] = {"output_dtype", "embedding_type", "encoding_type",
                                              "embedding_types"};
constexpr absl::string_view kFalseFields[] = {"return_multivector", "late_chunking"};

absl::Status CheckWord(JsonView request, absl::string_view field,
                       std::span<const absl::string_view> words) {
  std::optional<std::string> word;
  ATTENDANT_RETURN_IF_ERROR(request.Read(field, word));
  if (!word || std::find(words.begin(), words.end(), *word) != words.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be ", absl::StrJoin(words, " or "), ", not ", Quote(*word)));
}

absl::Status CheckIsWord(absl::string_view field, absl::string_view word, JsonView value) {
  if (value.kind() != JsonView::Kind::kString) return WrongJsonType(field, word, value);
  if (value.String() == word) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be ", word, ", not ", Quote(value.String())));
}

absl::Status CheckFalse(JsonView request, absl::string_view field) {
  bool given = false;
  ATTENDANT_RETURN_IF_ERROR(request.Read(field, given));
  if (!given) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " must be false, not true"));
}

}  // namespace

absl::Status CheckOnlyWord(JsonView request, absl::string_view field, absl::string_view word) {
  const std::optional<JsonView> value = request.Find(field);
  if (!value) return absl::OkStatus();
  if (value->kind() != JsonView::Kind::kArray) return CheckIsWord(field, word, *value);
  return value->ForEach([=](JsonView element) { return CheckIsWord(field, word, element); });
}

absl::Status CheckAnswerForm(JsonView request) {
  constexpr absl::string_view kDTypes[] = {"float32"};
  constexpr absl::string_view kByteOrders[] = {"native", "little"};
  ATTENDANT_RETURN_IF_ERROR(CheckWord(request, "embed_dtype", kDTypes));
  ATTENDANT_RETURN_IF_ERROR(CheckWord(request, "endianness", kByteOrders));
  for (const absl::string_view field : kFloatFields) {
    ATTENDANT_RETURN_IF_ERROR(CheckOnlyWord(request, field, "float"));
  }
  for (const absl::string_view field : kFalseFields) {
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(request, field));
  }
  return CheckOnlyWord(request, "modality", "text");
}

std::string AnswerFormProperties() {
  const auto only_word = [](absl::string_view field, absl::string_view word) {
    return absl::StrCat(",\"", field, R"(":{"oneOf":[{"const":")", word,
                        R"("},{"type":"array","items":{"const":")", word, R"("}}]})");
  };
  std::string properties =
      R"("embed_dtype":{"const":"float32"},"endianness":{"enum":["native","little"]})";
  for (const absl::string_view field : kFloatFields) properties += only_word(field, "float");
  for (const absl::string_view field : kFalseFields) {
    absl::StrAppend(&properties, ",\"", field, R"(":{"const":false})");
  }
  return properties + only_word("modality", "text");
}

}  // namespace attendant
