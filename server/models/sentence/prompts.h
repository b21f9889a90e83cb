// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_folder.h"
#include "server/models/sentence/pair_form.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The changes to a text of a ColBERT model beside its prompt (late_interaction.h).
struct TextForm {
  std::optional<int32_t> marker{};  // a token behind the first one
  int64_t max_tokens = 0;           // in place of the model's max_text_tokens; 0: those
  bool document = false;            // it has no vectors for the tokens that documents leave out
  std::optional<int32_t> filler{};  // the token that fills it up to filled_tokens
  int64_t filled_tokens = 0;
  bool attends_to_filler = true;
};

// A text that goes before a client's text.
struct Prompt {
  std::string text;
  int64_t tokens = 0;  // with the special tokens before it, without those behind it
  std::optional<TextForm> form{};
  std::optional<PairForm> pair_form{};  // of pairs that become messages (pair_form.h)
  bool looks_up = false;  // its texts have sparse vectors alone, looked up (sparse_lookup.h)
};

// The prompts that a checkpoint names: "query", "document". Immutable after loading, thread-safe.
struct Prompts {
  std::map<std::string, Prompt, std::less<>> by_name;
  std::string default_name;             // empty: none
  std::optional<PairForm> pair_form{};  // without a prompt; a model with it takes pairs alone

  // The form of pairs with `prompt`, or without one for null. Null: pairs have none.
  const PairForm* FindPairForm(const Prompt* prompt) const;

  // The prompt of that name; without a name, the default one; null for none, for an empty name and
  // for a prompt that changes nothing. INVALID_ARGUMENT, listing the names, for an unknown one.
  absl::StatusOr<const Prompt*> Find(const std::optional<std::string>& name) const;
};

// A prompt beyond this is refused: it is tokenized again with each text.
inline constexpr int64_t kMaxPromptBytes = 16 << 10;

// Reads `prompts` and `default_prompt_name` of config_sentence_transformers.json in `folder`;
// no prompts without that file. A model with an adapter has that adapter's prompt by default: the
// one of its name, else the text that `task_instructions` of config.json has for it.
// INVALID_ARGUMENT, naming the field, for a file that is not valid, a default that is no prompt and
// a prompt over kMaxPromptBytes.
absl::StatusOr<Prompts> ReadPrompts(const JsonFolder& folder, const std::string& adapter = "");

// Fills in the prompts' tokens. Errors are the tokenizer's, with the prompt's name.
absl::Status CountTokens(const Tokenizer& tokenizer, int64_t max_tokens, Prompts& prompts);

}  // namespace attendant
