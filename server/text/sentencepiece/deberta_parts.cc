// SPDX-License-Identifier: Apache-2.0
#include "server/text/sentencepiece/deberta_parts.h"

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {

absl::StatusOr<DebertaOptions> ReadDebertaOptions(const JsonNode& tokenizer_config) {
  DebertaOptions options;
  ATTENDANT_RETURN_IF_ERROR(tokenizer_config.Read("add_prefix_space", options.add_prefix_space));
  ATTENDANT_RETURN_IF_ERROR(tokenizer_config.Read("do_lower_case", options.do_lower_case));
  ATTENDANT_RETURN_IF_ERROR(tokenizer_config.Read("split_by_punct", options.split_by_punct));
  return options;
}

std::string DebertaNormalizer(const DebertaOptions& options) {
  return absl::StrCat(R"({"type":"Sequence","normalizers":[)",
                      options.do_lower_case ? R"({"type":"Lowercase"},)" : "",
                      R"({"type":"Replace","pattern":{"Regex":"\\s{2,}|[\\n\\r\\t]"},)",
                      R"("content":" "},{"type":"NFC"},)",
                      R"({"type":"Strip","strip_left":false,"strip_right":true}]})");
}

std::string DebertaPreTokenizer(const DebertaOptions& options) {
  return absl::StrCat(
      R"({"type":"Sequence","pretokenizers":[)",
      options.split_by_punct ? R"({"type":"Punctuation","behavior":"Isolated"},)" : "",
      DebertaMetaspace(options), "]}");
}

std::string DebertaMetaspace(const DebertaOptions& options) {
  return MetaspaceJson(options.add_prefix_space ? "always" : "first");
}

std::string MetaspaceJson(absl::string_view prepend_scheme) {
  return absl::StrCat(R"({"type":"Metaspace","replacement":")", "\xe2\x96\x81",
                      R"(","prepend_scheme":")", prepend_scheme, R"(","split":true})");
}

}  // namespace attendant
