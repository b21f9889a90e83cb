// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/json/json_view.h"
#include "server/limits/limits.h"
#include "server/models/encoder_model.h"
#include "server/models/sentence/prompts.h"
#include "server/requests/encode_types.h"

namespace attendant {

using Sequences = std::vector<SequenceContent>;

// A constant behind a reader is the JSON schema of what the reader takes, for OpenAPI.

// Reads what OpenAI and TEI take: a text, a list of texts, a list of token ids, or a list of such
// lists. INVALID_ARGUMENT names the field, and its element. Counts before it copies.
absl::Status SequencesFromJson(JsonView request, absl::string_view field,
                               const EncodeLimits& limits, Sequences& sequences);
inline constexpr absl::string_view kSequencesSchema =
    R"({"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},)"
    R"({"type":"array","items":{"type":"integer"}},)"
    R"({"type":"array","items":{"type":"array","items":{"type":"integer"}}}]})";

// A list that `expected` describes in errors. INVALID_ARGUMENT for another number of elements than
// a request may have.
absl::StatusOr<JsonView> ListFromJson(JsonView request, absl::string_view field,
                                      absl::string_view expected, const EncodeLimits& limits);

// A list of texts alone.
absl::Status TextsFromJson(JsonView request, absl::string_view field, const EncodeLimits& limits,
                           Sequences& sequences);
inline constexpr absl::string_view kTextsSchema = R"({"type":"array","items":{"type":"string"}})";

// A text, a pair of texts, or a list of these, which `many` tells: "a", ["a"] and ["a", "b"] are
// one input, [["a"], ["b", "c"]] are two.
absl::Status TextsOrPairsFromJson(JsonView request, absl::string_view field,
                                  const EncodeLimits& limits, Sequences& sequences, bool& many);

// A query, and a list of texts or of objects with a field `text`: a pair of each text with the
// query. INVALID_ARGUMENT also as CheckQuery says.
absl::Status PairsFromJson(JsonView request, absl::string_view query, absl::string_view texts,
                           const EncodeLimits& limits, Sequences& sequences);
// Like the function above, with a query that the caller has found; errors call it `name`.
absl::Status PairsFromJson(absl::string_view name, std::optional<JsonView> query, JsonView request,
                           absl::string_view texts, const EncodeLimits& limits,
                           Sequences& sequences);

// Reads a number of dimensions or tokens; 0 where the field is absent. INVALID_ARGUMENT below
// `minimum`.
absl::Status CountFromJson(JsonView request, absl::string_view field, int64_t& count,
                           int64_t minimum = 1);
inline constexpr absl::string_view kCountSchema = R"({"type":"integer","minimum":1})";

enum class UnknownInputType { kRefused, kDefaultPrompt };
// Chooses the prompt that input_type of Cohere, NVIDIA and Voyage stands for: `query` for
// search_query and query; `document`, `passage` or `corpus` for search_document, document and
// passage; else the one of the same name. Where the model has none of these, a search has no
// prompt, as in sentence-transformers' encode_query and encode_document, and the other types have
// the model's default prompt. Another word is INVALID_ARGUMENT, or has the default prompt too.
absl::Status InputTypeFromJson(JsonView request, const Prompts& prompts, UnknownInputType unknown,
                               EncodeInput& input);
inline constexpr absl::string_view kInputTypeSchema =
    R"({"enum":["search_document","search_query","document","passage","query","classification",)"
    R"("clustering"]})";

// Chooses the prompt that Jina's field `task` stands for: the model's prompt of that name; else for
// a word that ends in .query or .passage what input_type chooses for that ending, and for the other
// words of Jina's the model's default prompt. INVALID_ARGUMENT for other words, and for another
// task than that of the adapter in the model's weights.
absl::Status TaskFromJson(JsonView request, const EncoderModel& model, EncodeInput& input);

// Reads `truncate`: START, END or NONE, or absent.
absl::Status TruncationWordFromJson(JsonView request, Truncation absent, Truncation& truncation);

// Reads the side where a long text is cut: left or right, with small or capital letters. Leaves
// `side` as it is when the field is absent.
absl::Status SideFromJson(JsonView request, absl::string_view field,
                          std::optional<Truncation>& side);
inline constexpr absl::string_view kSideSchema = R"({"enum":["left","Left","right","Right"]})";

}  // namespace attendant
