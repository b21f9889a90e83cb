// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/read_pair_forms.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "server/models/sentence/chat_template.h"
#include "server/models/sentence/pair_form.h"
#include "server/models/sentence/transformer_file.h"
#include "server/text/base/literals.h"
#include "server/text/base/token_files.h"

namespace attendant {
namespace {

// Beyond it a folder is refused: each prompt has a text of its own.
constexpr size_t kMaxPairPrompts = 256;

// The arguments of transformers' apply_chat_template that are no variables of a template.
constexpr absl::string_view kArguments[] = {"assistant_tokens_mask",
                                            "chat_template",
                                            "continue_final_message",
                                            "conversation",
                                            "documents",
                                            "max_length",
                                            "padding",
                                            "return_assistant_tokens_mask",
                                            "return_dict",
                                            "return_tensors",
                                            "sanitize_control_tokens",
                                            "tokenize",
                                            "tokenizer_kwargs",
                                            "tools",
                                            "truncation"};

constexpr const char* kSpecialTokens[] = {"bos_token", "cls_token", "eos_token", "mask_token",
                                          "pad_token", "sep_token", "unk_token"};

struct TemplateSettings {
  std::map<std::string, ChatVariable> variables = {{"add_generation_prompt", false},
                                                   {"documents", std::monostate()},
                                                   {"tools", std::monostate()}};
  bool restores_suffix = true;
};

absl::StatusOr<ChatVariable> ReadVariable(const JsonNode& settings, const std::string& name) {
  if (!settings.Has(name)) return ChatVariable();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode node, settings.Field(name));
  bool flag = false;
  int64_t number = 0;
  std::string text;
  if (node.Get(flag).ok()) return ChatVariable(flag);
  if (node.Get(number).ok()) return ChatVariable(number);
  if (node.Get(text).ok()) return ChatVariable(std::move(text));
  return Unsupported(settings, name, "there", "a text, an integer or a boolean");
}

absl::Status ReadArguments(const JsonNode& file, TemplateSettings& settings) {
  if (!file.Has("processing_kwargs")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode kinds, file.Field("processing_kwargs"));
  if (!kinds.Has("chat_template")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode arguments, kinds.Field("chat_template"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, arguments.FieldNames());
  for (const std::string& name : names) {
    const auto* const end = std::end(kArguments);
    if (std::find(std::begin(kArguments), end, name) != end) {
      return Unsupported(arguments, name, "there", "none");
    }
    if (name == "restore_suffix") {
      ATTENDANT_RETURN_IF_ERROR(arguments.Read(name, settings.restores_suffix));
    } else {
      ATTENDANT_ASSIGN_OR_RETURN(settings.variables[name], ReadVariable(arguments, name));
    }
  }
  return absl::OkStatus();
}

// A template and the name of its place.
struct TemplateText {
  std::string where;
  std::string text;
};

// Several have names; the one of messages is `default`.
absl::StatusOr<TemplateText> ReadInConfig(const JsonNode& config) {
  TemplateText found{.where = absl::StrCat(config.where(), ": `chat_template`"), .text = ""};
  if (!config.Has("chat_template")) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.where(), ": `chat_template` is not there, nor chat_template.jinja"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode node, config.Field("chat_template"));
  if (!node.IsArray()) {
    ATTENDANT_RETURN_IF_ERROR(node.Get(found.text));
    return found;
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> templates, node.Elements());
  for (const JsonNode& one : templates) {
    std::string name;
    ATTENDANT_RETURN_IF_ERROR(one.Require("name", name));
    if (name != "default") continue;
    ATTENDANT_RETURN_IF_ERROR(one.Require("template", found.text));
    return found;
  }
  return absl::InvalidArgumentError(absl::StrCat(found.where, " has none named `default`"));
}

absl::StatusOr<TemplateText> ReadTemplate(const ModelFolder& folder, const JsonNode& config) {
  const std::string path = folder.encoder.path() + "/chat_template.jinja";
  absl::StatusOr<std::string> text = ReadTextFile(path, kMaxTemplateBytes);
  if (absl::IsNotFound(text.status())) return ReadInConfig(config);
  ATTENDANT_RETURN_IF_ERROR(text);
  return TemplateText{.where = path, .text = *std::move(text)};
}

// Whether `file` says which token that is; null says that there is none.
absl::StatusOr<bool> ReadSpecialToken(const JsonNode& file, const std::string& name,
                                      TemplateSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> fields, file.FieldNames());
  if (std::find(fields.begin(), fields.end(), name) == fields.end()) return false;
  std::optional<std::string> token;
  ATTENDANT_RETURN_IF_ERROR(ReadTokenText(file, name, token));
  if (token.has_value()) settings.variables.emplace(name, *std::move(token));
  return true;
}

// The older file counts before, as for transformers. A token that no file names may have a default
// in the tokenizer's class: a template that may want it is refused.
absl::Status ReadSpecialTokens(const ModelFolder& folder, const JsonNode& config,
                               const TemplateText& source, TemplateSettings& settings) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, ReadSpecialTokensMap(folder.encoder, config));
  for (const std::string name : kSpecialTokens) {
    if (settings.variables.count(name) > 0) continue;  // an argument of that name
    ATTENDANT_ASSIGN_OR_RETURN(bool said, ReadSpecialToken(map, name, settings));
    if (said) continue;
    ATTENDANT_ASSIGN_OR_RETURN(said, ReadSpecialToken(config, name, settings));
    if (said || !absl::StrContains(source.text, name)) continue;
    return absl::UnimplementedError(absl::StrCat(source.where, ": the template has ", Quoted(name),
                                                 ", which is not in ", config.where(),
                                                 "; null says that there is none"));
  }
  return absl::OkStatus();
}

absl::Status CheckOnce(const ChatText& text, int unknown, absl::string_view what) {
  const auto times = std::count_if(text.begin(), text.end(),
                                   [&](const ChatPart& part) { return part.unknown == unknown; });
  if (times == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the template gives out the ", what, " ", times, " times, not once"));
}

// The tokens of the form's text with `filler` for the query and the document.
absl::StatusOr<std::vector<int32_t>> TokensWith(const PairForm& form, const Tokenizer& tokenizer,
                                                absl::string_view filler) {
  ATTENDANT_ASSIGN_OR_RETURN(
      TokenizedText tokens,
      TokenizePair({.text = form.text, .suffix = {}}, tokenizer, filler, filler,
                   {.max_tokens = std::numeric_limits<int32_t>::max(), .truncate = false}));
  return std::move(tokens.token_ids);
}

// As sentence-transformers finds them: the last tokens that two pairs of texts have in common.
absl::Status FindSuffix(const Tokenizer& tokenizer, PairForm& form) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<int32_t> first, TokensWith(form, tokenizer, "0"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<int32_t> second,
                             TokensWith(form, tokenizer, "1 2 3 4"));
  const auto differ =
      std::mismatch(first.rbegin(), first.rend(), second.rbegin(), second.rend()).first;
  const auto count = static_cast<size_t>(differ - first.rbegin());
  if (count < std::min(first.size(), second.size())) form.suffix.assign(differ.base(), first.end());
  return absl::OkStatus();
}

class FormReader {
 public:
  FormReader(const ChatTemplate& chat, const TemplateSettings& settings, const Tokenizer& tokenizer)
      : chat_(chat), settings_(settings), tokenizer_(tokenizer) {}

  // With a message of the system, if there is one.
  absl::StatusOr<PairForm> Read(const std::string& system) {
    std::vector<ChatMessage> messages;
    if (!system.empty()) messages.push_back({.role = "system", .content = {{.fixed = system}}});
    messages.push_back({.role = "query", .content = {{.unknown = PairForm::kQuery}}});
    messages.push_back({.role = "document", .content = {{.unknown = PairForm::kDocument}}});
    PairForm form;
    ATTENDANT_ASSIGN_OR_RETURN(form.text, chat_.Render(messages, settings_.variables, work_));
    ATTENDANT_RETURN_IF_ERROR(CheckOnce(form.text, PairForm::kQuery, "query"));
    ATTENDANT_RETURN_IF_ERROR(CheckOnce(form.text, PairForm::kDocument, "document"));
    if (settings_.restores_suffix) ATTENDANT_RETURN_IF_ERROR(FindSuffix(tokenizer_, form));
    return form;
  }

 private:
  const ChatTemplate& chat_;
  const TemplateSettings& settings_;
  const Tokenizer& tokenizer_;
  size_t work_ = 0;
};

absl::Status AddForms(FormReader reader, Prompts& prompts) {
  if (prompts.by_name.size() > kMaxPairPrompts) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", prompts.by_name.size(), " prompts for it, the limit is ", kMaxPairPrompts));
  }
  ATTENDANT_ASSIGN_OR_RETURN(prompts.pair_form, reader.Read(""));
  for (auto& [name, prompt] : prompts.by_name) {
    absl::StatusOr<PairForm> form = reader.Read(prompt.text);
    if (!form.ok()) {
      return absl::Status(form.status().code(), absl::StrCat("with the prompt ", Quote(name), ": ",
                                                             form.status().message()));
    }
    prompt.pair_form = *std::move(form);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddPairForms(const ModelFolder& folder, const Tokenizer& tokenizer, Prompts& prompts) {
  ATTENDANT_ASSIGN_OR_RETURN(const bool messages, PairsAreMessages(folder));
  if (!messages) return absl::OkStatus();
  TemplateSettings settings;
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> file,
                             ReadTransformerFile(folder.encoder));
  if (file.has_value()) ATTENDANT_RETURN_IF_ERROR(ReadArguments(*file, settings));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.encoder.Read("tokenizer_config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const TemplateText source, ReadTemplate(folder, config));
  ATTENDANT_RETURN_IF_ERROR(ReadSpecialTokens(folder, config, source, settings));
  const absl::StatusOr<ChatTemplate> chat = ChatTemplate::Parse(source.text);
  const absl::Status status =
      chat.ok() ? AddForms(FormReader(*chat, settings, tokenizer), prompts) : chat.status();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(source.where, ": ", status.message()));
}

}  // namespace attendant
