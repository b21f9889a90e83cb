// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer_config.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "kernels/io/json_folder.h"
#include "server/text/base/token_files.h"
#include "server/text/named_tokens.h"

namespace attendant {
namespace {

constexpr absl::string_view kInputNames = "model_input_names";
constexpr absl::string_view kMpnet = "MPNetTokenizer";
constexpr absl::string_view kDebertaV2 = "DebertaV2Tokenizer";
constexpr absl::string_view kXlmRoberta = "XLMRobertaTokenizer";
constexpr absl::string_view kRoberta = "RobertaTokenizer";
constexpr absl::string_view kEsm = "EsmTokenizer";
constexpr absl::string_view kGeneric = "TokenizersBackend";

// Of transformers 5.23; every other class has neither.
struct TokenizerClass {
  absl::string_view name;  // without "Fast"
  bool is_bert;            // makes the normalizer anew
  bool has_segments;
};
constexpr TokenizerClass kClasses[] = {
    {"BertTokenizer", true, true},
    {"ConvBertTokenizer", false, true},
    {"DPRContextEncoderTokenizer", true, true},
    {"DPRQuestionEncoderTokenizer", true, true},
    {"DebertaTokenizer", false, true},
    {kDebertaV2, false, true},
    {"DistilBertTokenizer", true, false},
    {"ElectraTokenizer", true, true},
    {"LayoutLMTokenizer", true, true},
    {"LxmertTokenizer", true, true},
    {kMpnet, true, false},
    {"MobileBertTokenizer", true, true},
    {"SqueezeBertTokenizer", true, true},
};

constexpr FamilyRole kBertRoles[] = {{"unk_token", "[UNK]"},
                                     {"sep_token", "[SEP]"},
                                     {"pad_token", "[PAD]"},
                                     {"cls_token", "[CLS]"},
                                     {"mask_token", "[MASK]"}};

constexpr FamilyRole kEsmRoles[] = {{"unk_token", "<unk>"},
                                    {"pad_token", "<pad>"},
                                    {"cls_token", "<cls>"},
                                    {"mask_token", "<mask>"},
                                    {"eos_token", "<eos>"}};  // unless it is null

// The classes of model types, whatever class their folders name.
constexpr std::pair<absl::string_view, absl::string_view> kFixedTypes[] = {
    {"mistral", kGeneric}, {"modernbert", kGeneric}, {"qwen2", "Qwen2Tokenizer"}};

// The classes of model types whose folders do not name one.
constexpr std::pair<absl::string_view, absl::string_view> kModelTypes[] = {
    {"albert", "AlbertTokenizer"},
    {"bert", "BertTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"convbert", "BertTokenizer"},
    {"deberta", "DebertaTokenizer"},
    {"deberta-v2", kDebertaV2},
    {"distilbert", "BertTokenizer"},
    {"electra", "BertTokenizer"},
    {"esm", kEsm},
    {"gte", kXlmRoberta},
    {"jina_embeddings_v3", kXlmRoberta},
    {"layoutlm", "BertTokenizer"},
    {"megatron-bert", "BertTokenizer"},
    {"mobilebert", "BertTokenizer"},
    {"mpnet", "MPNetTokenizer"},
    {"nomic_bert", "BertTokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
    {"roberta", kRoberta},
    {"squeezebert", "BertTokenizer"},
    {"t5", "T5Tokenizer"},
    {"xlm-roberta", kXlmRoberta},
};

// Empty: neither a class nor a model type.
absl::StatusOr<std::string> FindClass(const JsonFolder& folder, const JsonNode& config) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode model, folder.ReadOrEmpty("config.json"));
  std::string name, model_type;
  ATTENDANT_RETURN_IF_ERROR(model.Read("tokenizer_class", name));
  ATTENDANT_RETURN_IF_ERROR(config.Read("tokenizer_class", name));
  ATTENDANT_RETURN_IF_ERROR(model.Read("model_type", model_type));
  for (const auto& [type, tokenizer_class] : kFixedTypes) {
    if (type == model_type) return std::string(tokenizer_class);
  }
  if (!name.empty()) return std::string(absl::StripSuffix(name, "Fast"));
  for (const auto& [type, tokenizer_class] : kModelTypes) {
    if (type == model_type) return std::string(tokenizer_class);
  }
  return std::string(model_type.empty() ? "" : kGeneric);
}

absl::StatusOr<BertSettings> ReadBert(const JsonFolder& folder, const JsonNode& config,
                                      const std::string& name) {
  BertSettings bert;
  bert.tokenizer_class = name;
  bert.refuses_bpe = name == kMpnet;
  if (config.Has("tokenizer_class")) {
    bert.cls_token = name == kMpnet ? "<s>" : "[CLS]";
    bert.sep_token = name == kMpnet ? "</s>" : "[SEP]";
    bert.sequence_template =
        name == kMpnet ? BertSettings::Template::kRoberta : BertSettings::Template::kBert;
  }
  ATTENDANT_RETURN_IF_ERROR(config.Read("do_lower_case", bert.do_lower_case));
  ATTENDANT_RETURN_IF_ERROR(config.Read("tokenize_chinese_chars", bert.tokenize_chinese_chars));
  if (config.Has("strip_accents")) {
    ATTENDANT_RETURN_IF_ERROR(config.Require("strip_accents", bert.strip_accents.emplace()));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, ReadSpecialTokensMap(folder, config));
  for (const JsonNode* const file : {&config, &map}) {
    ATTENDANT_RETURN_IF_ERROR(ReadTokenText(*file, "cls_token", bert.cls_token));
    ATTENDANT_RETURN_IF_ERROR(ReadTokenText(*file, "sep_token", bert.sep_token));
    ATTENDANT_RETURN_IF_ERROR(ReadTokenText(*file, "unk_token", bert.unk_token));
  }
  return bert;
}

// None: the class makes none of the families.
absl::StatusOr<std::optional<FamilySettings>> ReadFamily(const JsonFolder& folder,
                                                         const JsonNode& config,
                                                         const std::string& name) {
  FamilySettings settings;
  settings.family = name.empty() ? nullptr : FindSentencePieceFamily(name, "");
  if (settings.family == nullptr) return std::nullopt;
  ATTENDANT_ASSIGN_OR_RETURN(settings.options, ReadFamilyOptions(config));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, ReadSpecialTokensMap(folder, config));
  for (const JsonNode* const file : {&config, &map}) {
    for (const FamilyRole& role : settings.family->roles) {
      std::optional<std::string> token;
      ATTENDANT_RETURN_IF_ERROR(ReadTokenText(*file, role.field, token));
      if (token.has_value()) settings.tokens[std::string(role.field)] = *std::move(token);
    }
  }
  return settings;
}

// The tokens that BERT's own class, byte-level classes and the families have by themselves. Other
// classes have theirs in their files.
absl::StatusOr<ClassTokens> TokensOfClass(const JsonNode& config,
                                          const TokenizerSettings& settings) {
  if (settings.bert.has_value() && settings.bert->tokenizer_class != kMpnet) {
    return ClassTokens{.roles = kBertRoles};
  }
  if (settings.byte_level.has_value())
    return ClassTokens{.roles = settings.byte_level->made->roles};
  if (settings.esm.has_value()) {
    const absl::Span<const FamilyRole> roles = kEsmRoles;
    return ClassTokens{
        .roles = roles.subspan(0, roles.size() - (settings.esm->eos.has_value() ? 0u : 1u))};
  }
  if (!settings.family.has_value()) return ClassTokens();
  const SentencePieceFamily& family = *settings.family->family;
  ClassTokens own{.roles = family.roles, .mask_strips_left = family.mask_strips_left};
  for (const absl::string_view extra : family.extras) own.extras.emplace_back(extra);
  if (family.extra_ids == 0) return own;
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t extra_ids, ReadExtraIds(config, family));
  for (int64_t i = 0; i < extra_ids; ++i) own.extras.push_back(absl::StrCat("<extra_id_", i, ">"));
  return own;
}

// The eos_token that the code of gte-Qwen2's tokenizers puts behind each text; none: it does not.
absl::StatusOr<std::optional<std::string>> ReadEndToken(const JsonNode& config) {
  constexpr absl::string_view kCode = "tokenization_qwen.Qwen2TokenizerFast";
  std::optional<std::string> token;
  bool adds = false, is_code = false;
  ATTENDANT_RETURN_IF_ERROR(config.Read("add_eos_token", adds));
  if (!adds || !config.Has("auto_map")) return token;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, config.Field("auto_map"));
  if (!map.Has("AutoTokenizer")) return token;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode code, map.Field("AutoTokenizer"));
  if (!code.IsArray()) return token;
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> names, code.Elements());
  for (const JsonNode& node : names) {
    std::string name;
    is_code = is_code || (node.Get(name).ok() && absl::EndsWith(name, kCode));
  }
  if (is_code) ATTENDANT_RETURN_IF_ERROR(ReadTokenText(config, "eos_token", token));
  return token;
}

absl::StatusOr<bool> NamesSegments(const JsonNode& config) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, config.Field(kInputNames));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> names, list.Elements());
  bool found = false;
  for (const JsonNode& node : names) {
    std::string name;
    ATTENDANT_RETURN_IF_ERROR(node.Get(name));
    found = found || name == "token_type_ids";
  }
  return found;
}

}  // namespace

absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const JsonFolder& folder) {
  TokenizerSettings settings;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.ReadOrEmpty("tokenizer_config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string name, FindClass(folder, config));
  const auto known = std::find_if(std::begin(kClasses), std::end(kClasses),
                                  [&](const TokenizerClass& one) { return one.name == name; });
  const bool is_known = known != std::end(kClasses);
  if (is_known && known->is_bert) {
    ATTENDANT_ASSIGN_OR_RETURN(settings.bert, ReadBert(folder, config, name));
  }
  ATTENDANT_ASSIGN_OR_RETURN(settings.family, ReadFamily(folder, config, name));
  if (const ByteLevelClass* const made = FindByteLevelClass(name)) {
    ByteLevelSettings& own = settings.byte_level.emplace(ByteLevelSettings{.made = made});
    ATTENDANT_RETURN_IF_ERROR(config.Read("add_prefix_space", own.add_prefix_space));
  }
  if (name == "LlamaTokenizer") {
    LlamaSettings& own = settings.llama.emplace();
    ATTENDANT_RETURN_IF_ERROR(config.Read("add_prefix_space", own.add_prefix_space));
    ATTENDANT_RETURN_IF_ERROR(config.Read("legacy", own.legacy));
    ATTENDANT_ASSIGN_OR_RETURN(own.named_tokens,
                               ReadNamedTokens(folder, config, {.roles = LlamaRoles()}));
  }
  if (name == kEsm) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, ReadSpecialTokensMap(folder, config));
    ATTENDANT_ASSIGN_OR_RETURN(settings.esm, ReadEsmTokens(config, map));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const ClassTokens own, TokensOfClass(config, settings));
  ATTENDANT_ASSIGN_OR_RETURN(settings.named_tokens, ReadNamedTokens(folder, config, own));
  ATTENDANT_RETURN_IF_ERROR(config.Read("split_special_tokens", settings.splits_special_tokens));
  ATTENDANT_ASSIGN_OR_RETURN(settings.end_token, ReadEndToken(config));
  if (name == kRoberta) {
    settings.add_prefix_space = false;
    ATTENDANT_RETURN_IF_ERROR(config.Read("add_prefix_space", *settings.add_prefix_space));
  }
  if (config.Has(kInputNames)) {
    ATTENDANT_ASSIGN_OR_RETURN(settings.has_segments, NamesSegments(config));
  } else if (!name.empty()) {
    settings.has_segments = is_known && known->has_segments;
  }
  return settings;
}

}  // namespace attendant
