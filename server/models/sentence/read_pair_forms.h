// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/prompts.h"
#include "server/text/tokenizer.h"

namespace attendant {

// Adds the forms of pairs, where PairsAreMessages: one without a prompt, and one for each prompt,
// which is the system's message. The template is chat_template.jinja, else `chat_template` of
// tokenizer_config.json; it finds the special tokens that this file or special_tokens_map.json
// names, and what `processing_kwargs` of the Transformer's settings says. INVALID_ARGUMENT for a
// file that is not valid, for no template, and for one that does not give out the query and the
// document once each; UNIMPLEMENTED for other settings, for a special token that no file names, and
// as ChatTemplate has it.
absl::Status AddPairForms(const ModelFolder& folder, const Tokenizer& tokenizer, Prompts& prompts);

}  // namespace attendant
