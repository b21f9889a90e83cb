// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/dialects.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/openai.h"

namespace attendant {
namespace {

// Moves the side of a cut; `word`: the request names it by START or END.
absl::Status SidesFromJson(JsonView request, bool word, Truncation& truncation) {
  for (const absl::string_view field : {"truncation_side", "truncation_direction"}) {
    std::optional<Truncation> side;
    ATTENDANT_RETURN_IF_ERROR(SideFromJson(request, field, side));
    if (!side || truncation == Truncation::kNone || *side == truncation) continue;
    if (word) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " names another side than truncate does"));
    }
    truncation = *side;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CutFromJson(JsonView request, Truncation absent, Truncation& truncation) {
  const std::optional<JsonView> truncate = request.Find("truncate");
  const bool word = truncate && truncate->kind() != JsonView::Kind::kBool;
  if (word) {
    ATTENDANT_RETURN_IF_ERROR(TruncationWordFromJson(request, absent, truncation));
  } else {
    bool cuts = absent != Truncation::kNone;
    ATTENDANT_RETURN_IF_ERROR(request.Read(truncate ? "truncate" : "truncation", cuts));
    truncation = cuts ? Truncation::kRight : Truncation::kNone;
  }
  ATTENDANT_RETURN_IF_ERROR(PromptTokensFromJson(request, truncation));
  return SidesFromJson(request, word, truncation);
}

std::string CutProperties(bool cuts) {
  const absl::string_view usual = cuts ? "true" : "false";
  return absl::StrCat(R"("truncate_prompt_tokens":)", kPromptTokensSchema,
                      R"(,"truncate":{"enum":["START","END","NONE",true,false],"default":)", usual,
                      R"(},"truncation":{"type":"boolean","default":)", usual,
                      R"(},"truncation_side":)", kSideSchema, R"(,"truncation_direction":)",
                      kSideSchema);
}

absl::Status NormalizeFromJson(JsonView request, std::optional<bool>& normalize) {
  bool activation = true;
  ATTENDANT_RETURN_IF_ERROR(request.Read("use_activation", activation));
  std::optional<bool> given;
  if (!activation) given = false;
  for (const absl::string_view field : {"normalize", "normalized"}) {
    std::optional<bool> value;
    ATTENDANT_RETURN_IF_ERROR(request.Read(field, value));
    if (value && value != given.value_or(*value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, " contradicts another one of normalize, normalized and use_activation"));
    }
    if (value) given = value;
  }
  if (given) normalize = given;
  return absl::OkStatus();
}

absl::Status PromptFromJson(JsonView request, const EncoderModel& model, EncodeInput& input) {
  absl::string_view first;
  for (const absl::string_view field : {"prompt_name", "task", "input_type"}) {
    if (!request.Find(field)) continue;
    if (!first.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(first, " and ", field, " exclude each other"));
    }
    first = field;
  }
  for (const SequenceContent& sequence : input.sequences) {
    if (!std::holds_alternative<std::string>(sequence)) return absl::OkStatus();
  }
  ATTENDANT_RETURN_IF_ERROR(request.Read("prompt_name", input.prompt_name));
  ATTENDANT_RETURN_IF_ERROR(TaskFromJson(request, model, input));
  return InputTypeFromJson(request, model.prompts, UnknownInputType::kDefaultPrompt, input);
}

absl::Status RawScoresFromJson(JsonView request, EncodeInput& input) {
  bool raw = false, activation = true;
  ATTENDANT_RETURN_IF_ERROR(request.Read("raw_scores", raw));
  ATTENDANT_RETURN_IF_ERROR(request.Read("use_activation", activation));
  if (raw || !activation) input.score_activation = ScoreActivation::kNone;
  return absl::OkStatus();
}

}  // namespace attendant
