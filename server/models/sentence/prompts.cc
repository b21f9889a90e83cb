// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/prompts.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

// The field `name` of `texts`, if it is there.
absl::Status ReadPrompt(const JsonNode& texts, const std::string& name, Prompts& prompts) {
  Prompt prompt;
  ATTENDANT_RETURN_IF_ERROR(texts.Read(name, prompt.text));
  if (static_cast<int64_t>(prompt.text.size()) > kMaxPromptBytes) {
    return absl::InvalidArgumentError(absl::StrCat(texts.where(), ": ", Quoted(name), " has ",
                                                   prompt.text.size(), " bytes, the limit is ",
                                                   kMaxPromptBytes));
  }
  prompts.by_name.emplace(name, std::move(prompt));
  return absl::OkStatus();
}

absl::Status ReadTexts(const JsonNode& config, Prompts& prompts) {
  if (!config.Has("prompts")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode texts, config.Field("prompts"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, texts.FieldNames());
  for (const std::string& name : names) {
    ATTENDANT_RETURN_IF_ERROR(ReadPrompt(texts, name, prompts));
  }
  return absl::OkStatus();
}

absl::StatusOr<Prompts> ReadSavedPrompts(const JsonFolder& folder) {
  Prompts prompts;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config,
                             folder.ReadOrEmpty("config_sentence_transformers.json"));
  ATTENDANT_RETURN_IF_ERROR(ReadTexts(config, prompts));
  ATTENDANT_RETURN_IF_ERROR(config.Read("default_prompt_name", prompts.default_name));
  if (prompts.default_name.empty() || prompts.by_name.contains(prompts.default_name)) {
    return prompts;
  }
  return absl::InvalidArgumentError(absl::StrCat(config.where(), ": `default_prompt_name` is ",
                                                 Quote(prompts.default_name),
                                                 ", which is none of `prompts`"));
}

absl::Status AddInstruction(const JsonFolder& folder, const std::string& adapter,
                            Prompts& prompts) {
  if (!prompts.by_name.contains(adapter)) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
    if (!config.Has("task_instructions")) return absl::OkStatus();
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode texts, config.Field("task_instructions"));
    ATTENDANT_RETURN_IF_ERROR(ReadPrompt(texts, adapter, prompts));
  }
  prompts.default_name = adapter;
  return absl::OkStatus();
}

}  // namespace

const PairForm* Prompts::FindPairForm(const Prompt* prompt) const {
  if (!pair_form.has_value()) return nullptr;
  return prompt == nullptr ? &*pair_form : &*prompt->pair_form;
}

absl::StatusOr<const Prompt*> Prompts::Find(const std::optional<std::string>& name) const {
  const std::string& wanted = name.has_value() ? *name : default_name;
  if (wanted.empty()) return nullptr;
  const auto found = by_name.find(wanted);
  if (found != by_name.end()) {
    const Prompt& prompt = found->second;
    const bool changes = !prompt.text.empty() || prompt.form.has_value() || prompt.looks_up;
    return changes ? &prompt : nullptr;
  }
  const std::string names = absl::StrJoin(by_name, ", ", [](std::string* out, const auto& prompt) {
    out->append(Quote(prompt.first));
  });
  return absl::InvalidArgumentError(
      absl::StrCat("prompt_name is ", Quote(wanted), ", the model has ",
                   names.empty() ? "no prompts" : absl::StrCat("the prompts ", names)));
}

absl::StatusOr<Prompts> ReadPrompts(const JsonFolder& folder, const std::string& adapter) {
  ATTENDANT_ASSIGN_OR_RETURN(Prompts prompts, ReadSavedPrompts(folder));
  if (adapter.empty()) return prompts;
  ATTENDANT_RETURN_IF_ERROR(AddInstruction(folder, adapter, prompts));
  return prompts;
}

// As sentence-transformers counts: one special token behind the prompt is not its own.
absl::Status CountTokens(const Tokenizer& tokenizer, int64_t max_tokens, Prompts& prompts) {
  for (auto& [name, prompt] : prompts.by_name) {
    const absl::StatusOr<TokenizedText> tokens =
        tokenizer.Tokenize(prompt.text, {.max_tokens = max_tokens});
    if (!tokens.ok()) {
      return absl::Status(tokens.status().code(),
                          absl::StrCat("prompt ", Quote(name), ": ", tokens.status().message()));
    }
    prompt.tokens = static_cast<int64_t>(tokens->token_ids.size()) -
                    (tokenizer.special_tokens().after > 0 ? 1 : 0);
  }
  return absl::OkStatus();
}

}  // namespace attendant
