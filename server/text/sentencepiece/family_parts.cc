// SPDX-License-Identifier: Apache-2.0
#include "server/text/sentencepiece/family_parts.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// Of "bos_token $A eos_token".
std::string TemplateParts(absl::string_view text) {
  std::string json;
  for (const absl::string_view part : absl::StrSplit(text, ' ')) {
    const std::pair<absl::string_view, absl::string_view> name =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    absl::string_view id = name.first;
    const bool sequence = absl::ConsumePrefix(&id, "$");
    absl::StrAppend(&json, json.empty() ? "" : ",",
                    sequence ? R"({"Sequence":)" : R"({"SpecialToken":)", R"({"id":")", id,
                    R"(","type_id":)", name.second.empty() ? "0" : name.second, "}}");
  }
  return json;
}

std::string LettersNormalizer(const FamilyOptions& options, absl::string_view precompiled) {
  return absl::StrCat(R"({"type":"Sequence","normalizers":[)",
                      R"({"type":"Replace","pattern":{"String":"``"},"content":"\""},)",
                      R"({"type":"Replace","pattern":{"String":"''"},"content":"\""})",
                      options.keep_accents ? "" : R"(,{"type":"NFKD"},{"type":"StripAccents"})",
                      options.do_lower_case.value_or(true) ? R"(,{"type":"Lowercase"})" : "",
                      precompiled.empty() ? "" : ",", precompiled, "]}");
}

}  // namespace

absl::StatusOr<FamilyOptions> ReadFamilyOptions(const JsonNode& tokenizer_config) {
  FamilyOptions options;
  ATTENDANT_RETURN_IF_ERROR(tokenizer_config.Read("add_prefix_space", options.add_prefix_space));
  if (tokenizer_config.Has("do_lower_case")) {
    ATTENDANT_RETURN_IF_ERROR(
        tokenizer_config.Require("do_lower_case", options.do_lower_case.emplace()));
  }
  ATTENDANT_RETURN_IF_ERROR(tokenizer_config.Read("split_by_punct", options.split_by_punct));
  ATTENDANT_RETURN_IF_ERROR(tokenizer_config.Read("keep_accents", options.keep_accents));
  return options;
}

absl::StatusOr<int64_t> ReadExtraIds(const JsonNode& tokenizer_config,
                                     const SentencePieceFamily& family) {
  constexpr int64_t kMaxExtraIds = 1000;
  int64_t extra_ids = family.extra_ids;
  if (extra_ids == 0) return extra_ids;
  ATTENDANT_RETURN_IF_ERROR(tokenizer_config.Read("extra_ids", extra_ids));
  if (extra_ids >= 0 && extra_ids <= kMaxExtraIds) return extra_ids;
  return absl::InvalidArgumentError(absl::StrCat(tokenizer_config.where(), ": extra_ids is ",
                                                 extra_ids, ", it must be from 0 to ",
                                                 kMaxExtraIds));
}

std::string FamilyNormalizer(const SentencePieceFamily& family, const FamilyOptions& options,
                             absl::string_view charsmap) {
  if (family.cleans_spaces) {
    return absl::StrCat(R"({"type":"Sequence","normalizers":[)",
                        options.do_lower_case.value_or(false) ? R"({"type":"Lowercase"},)" : "",
                        R"({"type":"Replace","pattern":{"Regex":"\\s{2,}|[\\n\\r\\t]"},)",
                        R"("content":" "},{"type":"NFC"},)",
                        R"({"type":"Strip","strip_left":false,"strip_right":true}]})");
  }
  const std::string precompiled =
      charsmap.empty()
          ? ""
          : absl::StrCat(R"({"type":"Precompiled","precompiled_charsmap":")", charsmap, R"("})");
  if (family.cleans_letters) return LettersNormalizer(options, precompiled);
  return precompiled.empty() ? "null" : precompiled;
}

std::string FamilyPreTokenizer(const SentencePieceFamily& family, const FamilyOptions& options) {
  return absl::StrCat(R"({"type":"Sequence","pretokenizers":[)",
                      !family.cleans_spaces    ? R"({"type":"WhitespaceSplit"},)"
                      : options.split_by_punct ? R"({"type":"Punctuation","behavior":"Isolated"},)"
                                               : "",
                      FamilyDecoder(family, options), "]}");
}

std::string FamilyDecoder(const SentencePieceFamily& family, const FamilyOptions& options) {
  return absl::StrCat(
      R"({"type":"Metaspace","replacement":")", "\xe2\x96\x81", R"(","prepend_scheme":")",
      options.add_prefix_space ? "always" : family.without_prefix, R"(","split":true})");
}

std::string FamilyTemplate(const SentencePieceFamily& family,
                           absl::FunctionRef<int64_t(const FamilyRole&)> id_of) {
  std::string tokens;
  for (const FamilyRole& role : family.roles) {
    if (!absl::StrContains(family.single, role.field)) continue;
    absl::StrAppend(&tokens, tokens.empty() ? "\"" : ",\"", role.field, R"(":{"ids":[)",
                    id_of(role), "]}");
  }
  return absl::StrCat(R"({"type":"TemplateProcessing","single":[)", TemplateParts(family.single),
                      R"(],"pair":[)", TemplateParts(family.pair), R"(],"special_tokens":{)",
                      tokens, "}}");
}

}  // namespace attendant
