// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/late_interaction.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/checkpoints/colbert_head.h"
#include "kernels/checkpoints/head_fields.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "server/models/sentence/head_options.h"

namespace attendant {
namespace {

constexpr char kQuery[] = "query", kDocument[] = "document";

std::vector<std::string> Punctuation() {
  std::vector<std::string> words;
  for (char c = '!'; c <= '~'; ++c) {
    if (std::ispunct(static_cast<unsigned char>(c)) != 0) words.emplace_back(1, c);
  }
  return words;
}

// The fields of one of the two files.
struct FieldNames {
  const char* query_marker;
  const char* document_marker;
  const char* query_tokens;
  const char* document_tokens;
  const char* attends;
};
constexpr FieldNames kStanford = {"query_token_id", "doc_token_id", "query_maxlen", "doc_maxlen",
                                  "attend_to_mask_tokens"};
constexpr FieldNames kPyLate = {"query_prefix", "document_prefix", "query_length",
                                "document_length", "attend_to_expansion_tokens"};

absl::Status ReadFields(const JsonNode& config, const FieldNames& names, LateInteraction& late) {
  ATTENDANT_RETURN_IF_ERROR(config.Read(names.query_marker, late.query.marker));
  ATTENDANT_RETURN_IF_ERROR(config.Read(names.document_marker, late.document.marker));
  ATTENDANT_RETURN_IF_ERROR(config.Read(names.query_tokens, late.query.max_tokens));
  ATTENDANT_RETURN_IF_ERROR(config.Read(names.document_tokens, late.document.max_tokens));
  return config.Read(names.attends, late.attends_to_expansion);
}

absl::Status ReadStanford(const JsonFolder& folder, LateInteraction& late) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.ReadOrEmpty("artifact.metadata"));
  ATTENDANT_RETURN_IF_ERROR(ReadFields(config, kStanford, late));
  bool skips_punctuation = true;
  ATTENDANT_RETURN_IF_ERROR(config.Read("mask_punctuation", skips_punctuation));
  if (!skips_punctuation) late.skipped.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadWords(const JsonNode& config, const char* field) {
  std::vector<std::string> words;
  if (!config.Has(field)) return words;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, config.Field(field));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, list.Elements());
  for (const JsonNode& element : elements) {
    ATTENDANT_RETURN_IF_ERROR(element.Get(words.emplace_back()));
  }
  return words;
}

absl::Status ReadPyLate(const JsonFolder& folder, LateInteraction& late) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config,
                             folder.ReadOrEmpty("config_sentence_transformers.json"));
  ATTENDANT_RETURN_IF_ERROR(ReadFields(config, kPyLate, late));
  ATTENDANT_RETURN_IF_ERROR(config.Read("do_query_expansion", late.expands_queries));
  if (!config.Has("skiplist_words")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(late.skipped, ReadWords(config, "skiplist_words"));
  return absl::OkStatus();
}

absl::Status ReadExpansion(const JsonNode& config, LateInteraction& late) {
  late.expands_queries = false;
  if (!config.Has("query_expansion")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode expansion, config.Field("query_expansion"));
  late.expands_queries = true;
  std::string strategy;
  ATTENDANT_RETURN_IF_ERROR(expansion.Require("strategy", strategy));
  ATTENDANT_RETURN_IF_ERROR(expansion.Require("length", late.expanded_tokens));
  ATTENDANT_RETURN_IF_ERROR(expansion.Read("attend", late.attends_to_expansion));
  ATTENDANT_RETURN_IF_ERROR(expansion.Read("token", late.filler));
  ATTENDANT_RETURN_IF_ERROR(ReadAtLeast(expansion, "length", 1, late.expanded_tokens));
  if (strategy == "fixed") late.query.max_tokens = late.expanded_tokens;
  if (strategy == "fixed" || strategy == "min") return absl::OkStatus();
  return Unsupported(expansion, "strategy", Quoted(strategy), "fixed, min");
}

absl::Status ReadMask(const JsonFolder& folder, LateInteraction& late) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(late.skipped, ReadWords(config, "skiplist_words"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> tasks,
                             ReadWords(config, "skiplist_tasks"));
  const bool documents = tasks == std::vector<std::string>{kDocument};
  if (!late.skipped.empty() && config.Has("skiplist_tasks") && !documents) {
    return Unsupported(config, "skiplist_tasks", absl::StrJoin(tasks, ", "), "document");
  }
  if (!config.Has("keep_only_token_ids")) return absl::OkStatus();
  return Unsupported(config, "keep_only_token_ids", "a list", "null");
}

absl::StatusOr<LateInteraction> ReadMultiVectorEncoder(const JsonFolder& folder,
                                                       const JsonFolder& mask_folder) {
  LateInteraction late{.query = {}, .document = {}, .expands_queries = false};
  ATTENDANT_RETURN_IF_ERROR(ReadMask(mask_folder, late));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config,
                             folder.ReadOrEmpty("sentence_bert_config.json"));
  ATTENDANT_RETURN_IF_ERROR(config.Read("query_length", late.query.max_tokens));
  ATTENDANT_RETURN_IF_ERROR(config.Read("document_length", late.document.max_tokens));
  ATTENDANT_RETURN_IF_ERROR(ReadExpansion(config, late));
  return late;
}

absl::StatusOr<int32_t> FindMarker(const std::string& directory, const std::string& marker,
                                   const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids = FindIds(tokenizer, {&marker, 1});
  if (!ids.empty()) return ids.front();
  return absl::InvalidArgumentError(
      absl::StrCat(directory, ": the marker ", Quoted(marker),
                   " of a ColBERT model is no token of tokenizer.json"));
}

// Of a text without tokens: its marker and special tokens.
int64_t LeastTokens(const Tokenizer& tokenizer) {
  const Tokenizer::SpecialTokens special = tokenizer.special_tokens();
  return static_cast<int64_t>(special.before + special.after) + 1;
}

absl::StatusOr<TextForm> FormOf(const LateInteraction::Side& side, const char* name,
                                const std::string& directory, const Tokenizer& tokenizer,
                                int64_t max_tokens) {
  const int64_t least = LeastTokens(tokenizer);
  TextForm form{.max_tokens = std::min(side.max_tokens, max_tokens)};
  if (form.max_tokens < least && side.max_tokens != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": a ", name, " has at most ", form.max_tokens,
                     " tokens, its marker and special tokens are ", least));
  }
  if (side.marker.empty()) return form;
  ATTENDANT_ASSIGN_OR_RETURN(form.marker, FindMarker(directory, side.marker, tokenizer));
  return form;
}

absl::Status AddFiller(const LateInteraction& late, const JsonFolder& folder,
                       const Tokenizer& tokenizer, int64_t max_tokens, TextForm& query) {
  if (!late.expands_queries) return absl::OkStatus();
  query.attends_to_filler = late.attends_to_expansion;
  query.filled_tokens =
      late.expanded_tokens > 0 ? std::min(late.expanded_tokens, max_tokens) : query.max_tokens;
  if (!late.filler.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(query.filler, FindMarker(folder.path(), late.filler, tokenizer));
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(query.filler, FindMask(folder, &tokenizer));
  if (query.filler.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(folder.path(),
                   ": queries of this ColBERT model are filled up with mask tokens, "
                   "and tokenizer.json has no mask token"));
}

}  // namespace

absl::StatusOr<LateInteraction> ReadLateInteraction(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonFolder> mask_folder, FindMaskModule(folder));
  if (mask_folder.has_value()) return ReadMultiVectorEncoder(folder, *mask_folder);
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string architecture, FirstArchitecture(config));
  LateInteraction late{.skipped = Punctuation()};
  if (architecture == "HF_ColBERT") {
    late.query.marker = "[unused0]";
    late.document.marker = "[unused1]";
  }
  ATTENDANT_RETURN_IF_ERROR(ReadStanford(folder, late));
  ATTENDANT_RETURN_IF_ERROR(ReadPyLate(folder, late));
  return late;
}

absl::StatusOr<std::optional<LateInteraction>> FindLateInteraction(
    const JsonFolder& folder, std::span<const TokenHead> heads) {
  const bool found = std::any_of(heads.begin(), heads.end(), [](const TokenHead& head) {
    return head.options.late_interaction;
  });
  if (!found) return std::nullopt;
  return ReadLateInteraction(folder);
}

std::vector<int32_t> FindSkipped(const LateInteraction& late, const Tokenizer& tokenizer) {
  return FindIds(tokenizer, late.skipped);
}

absl::Status AddTextForms(const LateInteraction& late, const JsonFolder& folder,
                          const Tokenizer& tokenizer, int64_t max_tokens, Prompts& prompts) {
  ATTENDANT_ASSIGN_OR_RETURN(TextForm query,
                             FormOf(late.query, kQuery, folder.path(), tokenizer, max_tokens));
  ATTENDANT_ASSIGN_OR_RETURN(
      TextForm document, FormOf(late.document, kDocument, folder.path(), tokenizer, max_tokens));
  ATTENDANT_RETURN_IF_ERROR(AddFiller(late, folder, tokenizer, max_tokens, query));
  document.document = true;
  prompts.by_name[kQuery].form = query;
  prompts.by_name[kDocument].form = document;
  if (prompts.default_name.empty()) prompts.default_name = kDocument;
  return absl::OkStatus();
}

absl::Status CheckExpansion(const EncoderConfig& config, const std::string& directory,
                            const Tokenizer& tokenizer, const Prompts& prompts) {
  const auto query = prompts.by_name.find(kQuery);
  if (query == prompts.by_name.end() || !query->second.form.has_value()) return absl::OkStatus();
  const TextForm& form = *query->second.form;
  const bool looks_back = form.filler.has_value() && !form.attends_to_filler;
  const int64_t least = LeastTokens(tokenizer) - (form.marker.has_value() ? 0 : 1);
  const int64_t farthest = form.filled_tokens - least;
  if (!looks_back || config.local_layers.none() || farthest <= config.window) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat(directory, ": a mask token of a query may stand ", farthest,
                   " tokens behind the text, and layers of this model attend to ", config.window,
                   " tokens before: queries of at most ", least + config.window,
                   " tokens are supported, or attention to mask tokens"));
}

}  // namespace attendant
