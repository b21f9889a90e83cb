// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/transformer_file.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/colbert_head.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "server/models/sentence/chat_template.h"

namespace attendant {
namespace {

// In the order of sentence-transformers.
constexpr const char* kFiles[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

// Arguments of from_pretrained() that say where files are, or how a batch is padded.
constexpr absl::string_view kHarmless[] = {"cache_dir",
                                           "clean_up_tokenization_spaces",
                                           "code_revision",
                                           "force_download",
                                           "local_files_only",
                                           "padding_side",
                                           "revision",
                                           "subfolder",
                                           "token",
                                           "trust_remote_code",
                                           "use_auth_token",
                                           "use_fast"};

// The object in `field`; unset where it is not there.
absl::StatusOr<std::optional<JsonNode>> FindObject(const JsonNode& config, const char* field) {
  if (!config.Has(field)) return std::nullopt;
  ATTENDANT_ASSIGN_OR_RETURN(JsonNode object, config.Field(field));
  return std::optional(std::move(object));
}

absl::Status CheckArguments(const JsonNode& config, const char* field) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> arguments, FindObject(config, field));
  if (!arguments.has_value()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, arguments->FieldNames());
  for (const std::string& name : names) {
    if (std::find(std::begin(kHarmless), std::end(kHarmless), name) != std::end(kHarmless))
      continue;
    return Unsupported(*arguments, name, "there", "none");
  }
  return absl::OkStatus();
}

// Arguments of calls of the tokenizer, by the kind of input.
absl::Status CheckCalls(const JsonNode& config) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> kinds,
                             FindObject(config, "processing_kwargs"));
  if (!kinds.has_value()) return absl::OkStatus();
  for (const char* kind : {"common", "text"}) {
    ATTENDANT_RETURN_IF_ERROR(CheckArguments(*kinds, kind));
  }
  return absl::OkStatus();
}

// Of a kind of input.
absl::Status CheckMethod(const JsonNode& kinds, const char* kind, const std::string& output) {
  if (!kinds.Has(kind)) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode input, kinds.Field(kind));
  ATTENDANT_RETURN_IF_ERROR(CheckText(input, "method", "forward"));
  return CheckText(input, "method_output_name", output);
}

absl::Status CheckOutput(const JsonNode& config, bool pairs_are_messages) {
  std::string task = "feature-extraction";
  ATTENDANT_RETURN_IF_ERROR(config.Read("transformer_task", task));
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> kinds,
                             FindObject(config, "modality_config"));
  if (!kinds.has_value()) return absl::OkStatus();
  const std::string output = task == "feature-extraction" ? "last_hidden_state" : "logits";
  ATTENDANT_RETURN_IF_ERROR(CheckMethod(*kinds, "text", output));
  if (!kinds->Has("message")) return absl::OkStatus();
  // With it, sentence-transformers makes a message of every text.
  if (!pairs_are_messages) {
    return Unsupported(*kinds, "message", "there",
                       "none but for a cross-encoder: single texts go through no chat template");
  }
  ATTENDANT_RETURN_IF_ERROR(CheckMethod(*kinds, "message", output));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode message, kinds->Field("message"));
  std::string format = "auto";
  ATTENDANT_RETURN_IF_ERROR(message.Read("format", format));
  if (format == "flat") return absl::OkStatus();
  return Unsupported(message, "format", Quoted(format), "`flat`");
}

absl::Status CheckLengths(const JsonNode& config, int64_t max_text_tokens) {
  for (const char* field : {"query_length", "document_length"}) {
    int64_t length = max_text_tokens;
    ATTENDANT_RETURN_IF_ERROR(config.Read(field, length));
    if (length == max_text_tokens) continue;
    return Unsupported(config, field, absl::StrCat(length),
                       absl::StrCat(max_text_tokens, ", the length of all texts"));
  }
  if (!config.Has("query_expansion")) return absl::OkStatus();
  return Unsupported(config, "query_expansion", "there", "none");
}

}  // namespace

absl::StatusOr<std::optional<JsonNode>> ReadTransformerFile(const JsonFolder& folder) {
  for (const char* file : kFiles) {
    ATTENDANT_ASSIGN_OR_RETURN(JsonNode config, folder.ReadOrEmpty(file));
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> fields, config.FieldNames());
    if (!fields.empty()) return std::optional(std::move(config));
  }
  return std::nullopt;
}

absl::Status CheckTransformerFile(const ModelFolder& folder, int64_t max_text_tokens) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> config,
                             ReadTransformerFile(folder.encoder));
  if (!config.has_value()) return absl::OkStatus();
  for (const char* field : {"config_args", "config_kwargs", "tokenizer_args", "processor_kwargs"}) {
    ATTENDANT_RETURN_IF_ERROR(CheckArguments(*config, field));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckCalls(*config));
  ATTENDANT_ASSIGN_OR_RETURN(const bool messages, PairsAreMessages(folder));
  ATTENDANT_RETURN_IF_ERROR(CheckOutput(*config, messages));
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonFolder> mask, FindMaskModule(folder.root));
  return mask.has_value() ? absl::OkStatus() : CheckLengths(*config, max_text_tokens);
}

}  // namespace attendant
