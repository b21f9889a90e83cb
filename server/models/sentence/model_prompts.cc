// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/model_prompts.h"

#include "absl/status/status.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_folder.h"
#include "server/models/sentence/read_pair_forms.h"

namespace attendant {
namespace {

absl::Status AddForms(const PromptContext& model, Prompts& prompts) {
  if (!model.late.has_value()) return absl::OkStatus();
  const JsonFolder& root = model.folder.root;
  ATTENDANT_RETURN_IF_ERROR(
      AddTextForms(*model.late, root, model.tokenizer, model.max_sequence_tokens, prompts));
  return CheckExpansion(model.config, root.path(), model.tokenizer, prompts);
}

}  // namespace

absl::StatusOr<ModelPrompts> ReadModelPrompts(const PromptContext& model,
                                              const std::string& adapter) {
  const ModelFolder& folder = model.folder;
  ModelPrompts read;
  ATTENDANT_ASSIGN_OR_RETURN(read.prompts, ReadPrompts(folder.root, adapter));
  ATTENDANT_RETURN_IF_ERROR(AddForms(model, read.prompts));
  if (folder.query.has_value() && model.makes_sparse) {
    ATTENDANT_ASSIGN_OR_RETURN(read.lookup, ReadSparseLookup(*folder.query, folder.encoder.path(),
                                                             model.tokenizer, model.config.vocab));
    AddLookup(*folder.query, read.prompts);
  }
  ATTENDANT_RETURN_IF_ERROR(AddPairForms(folder, model.tokenizer, read.prompts));
  ATTENDANT_RETURN_IF_ERROR(CountTokens(model.tokenizer, model.max_text_tokens, read.prompts));
  return read;
}

}  // namespace attendant
