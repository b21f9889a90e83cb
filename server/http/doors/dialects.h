// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/http/json/json_view.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

// Fields that the clients of one path have under several names. A field that changes the answer is
// honoured or refused: INVALID_ARGUMENT names it. Fields that no function here or in answer_form.h
// reads are ignored, as OpenAI ignores them.
namespace attendant {

// Reads where a text that is too long is cut. `truncate` is a word of NVIDIA's (START, END, NONE)
// or a boolean of Jina's, and goes before Voyage's `truncation`; vLLM's truncate_prompt_tokens goes
// before both. `absent`: without these. The side is that of vLLM's truncation_side or TEI's
// truncation_direction, which must not contradict a word.
absl::Status CutFromJson(JsonView request, Truncation absent, Truncation& truncation);
// Properties of a schema: those fields.
std::string CutProperties(bool cuts);

// Reads whether embeddings get length 1: TEI's `normalize`, Jina's `normalized`, and vLLM's
// use_activation where it is false. Leaves `normalize` as it is without these. They must not
// contradict each other.
absl::Status NormalizeFromJson(JsonView request, std::optional<bool>& normalize);
inline constexpr absl::string_view kNormalizeProperties =
    R"("normalize":{"type":"boolean"},"normalized":{"type":"boolean"},)"
    R"("use_activation":{"type":"boolean","default":true})";

// Chooses the prompt of texts: TEI's prompt_name, Jina's `task` (TaskFromJson), or input_type, of
// which words of other clients leave the model's default prompt (InputTypeFromJson). A request has
// one of the three at most. Token ids have no prompt. REQUIRES: `input` has its sequences.
absl::Status PromptFromJson(JsonView request, const EncoderModel& model, EncodeInput& input);
inline constexpr absl::string_view kPromptProperties =
    R"("prompt_name":{"type":"string"},"task":{"type":"string"},)"
    R"("input_type":{"type":"string","description":)"
    R"("as of /v2/embed; other words have the default prompt"})";

// Leaves scores as the model computes them where Infinity's raw_scores is true, or vLLM's
// use_activation false.
absl::Status RawScoresFromJson(JsonView request, EncodeInput& input);
inline constexpr absl::string_view kRawScoresProperties =
    R"("raw_scores":{"type":"boolean","default":false},)"
    R"("use_activation":{"type":"boolean","default":true})";

}  // namespace attendant
