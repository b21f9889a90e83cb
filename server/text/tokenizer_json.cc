// SPDX-License-Identifier: Apache-2.0
#include "server/text/tokenizer_json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/part_table.h"
#include "server/text/base/token_trie.h"
#include "server/text/normalizers/bert_normalizer.h"
#include "server/text/unicode/readable.h"

namespace attendant {
namespace {

constexpr JsonLimits kLimits = {.max_bytes = kMaxTokenizerFileBytes,
                                .max_depth = 64};  // a real file has 6

AddedToken ReadAddedToken(const JsonFields& fields) {
  AddedToken token;
  token.content = fields.String("content");
  token.id = static_cast<int32_t>(fields.Integer("id", kMaxTokenId));
  token.single_word = fields.Bool("single_word");
  token.lstrip = fields.Bool("lstrip");
  token.rstrip = fields.Bool("rstrip");
  token.normalized = fields.Bool("normalized");
  token.special = fields.Has("special") && fields.Bool("special");
  return token;
}

// The library ignores the file's ids: a token has the vocabulary's, else the next after all others.
// A file that says something else is ambiguous, so it is refused.
std::vector<AddedToken> ReadAddedTokens(const JsonFields& file, const ModelPart& part) {
  std::vector<AddedToken> tokens;
  if (!file.Has("added_tokens")) return tokens;
  auto next_id = static_cast<int64_t>(part.vocabulary.size());
  std::unordered_set<int32_t> ids;
  size_t bytes = 0;
  for (const JsonFields& fields : file.Objects("added_tokens")) {
    if (!file.ok()) break;
    tokens.push_back(ReadAddedToken(fields));
    const AddedToken& token = tokens.back();
    bytes += token.content.size();
    const int64_t known = part.model->FindToken(token.content);
    const int64_t id = known != TokenTrie::kNoId ? known : next_id++;
    // Of two with one id, the library takes the flags of the second one for both.
    if (!ids.insert(token.id).second) fields.Fail("id", "is that of another added token");
    if (token.id == id) continue;
    fields.Fail("id", absl::StrCat("is ", token.id, ", but ", ReadableName(token.content),
                                   " has the id ", id,
                                   known != TokenTrie::kNoId ? " in model.vocab"
                                                             : " as the next after model.vocab"));
  }
  CheckVocabularyBytes(file, "added_tokens", bytes);
  return tokens;
}

// Adds those that the vocabulary has: others would get ids that no model knows.
void AddNamedTokens(const TokenizerSettings& settings, const ModelPart& part,
                    std::vector<AddedToken>& tokens) {
  const std::vector<Literal>& named =
      settings.llama.has_value() ? settings.llama->named_tokens : settings.named_tokens;
  std::unordered_set<std::string> known;
  for (const AddedToken& token : tokens) known.insert(token.content);
  for (const Literal& literal : named) {
    const int32_t id = part.model->FindToken(literal.text);
    if (literal.text.empty() || id == TokenTrie::kNoId || !known.insert(literal.text).second)
      continue;
    tokens.push_back({.content = literal.text,
                      .id = id,
                      .single_word = literal.single_word,
                      .lstrip = literal.lstrip,
                      .rstrip = literal.rstrip,
                      .normalized = literal.normalized,
                      .special = literal.special});
  }
  for (AddedToken& token : tokens) {
    token.is_text = settings.splits_special_tokens && token.special;
  }
}

int64_t CountIds(const TokenizerParts& parts, const std::vector<VocabularyEntry>& vocabulary) {
  int64_t largest = -1;
  const auto add = [&](int32_t id) { largest = std::max<int64_t>(largest, id); };
  for (const VocabularyEntry& entry : vocabulary) add(entry.id);
  for (const AddedToken& token : parts.added_tokens) add(token.id);
  for (const TemplatePart& part : parts.sequence.single) add(part.id);
  for (const TemplatePart& part : parts.sequence.pair) add(part.id);
  return largest + 1;
}

TokenStrings ListStrings(const TokenizerParts& parts,
                         const std::vector<VocabularyEntry>& vocabulary) {
  TokenStrings strings;
  for (const VocabularyEntry& entry : vocabulary) strings.Add(entry.id, entry.token);
  for (const AddedToken& token : parts.added_tokens) strings.Add(token.id, token.content);
  strings.Seal();
  return strings;
}

// The settings of a tokenizer of BERT's kind, if this is one.
const BertSettings* FindBert(const JsonFields& file, const TokenizerSettings& settings) {
  return settings.bert.has_value() && ModelType(file) == "WordPiece" ? &*settings.bert : nullptr;
}

std::optional<BertNormalizerConfig> NormalizerOf(const BertSettings* bert) {
  if (bert == nullptr) return std::nullopt;
  return BertNormalizerConfig{.clean_text = true,
                              .handle_chinese_chars = bert->tokenize_chinese_chars,
                              .strip_accents = bert->strip_accents.value_or(bert->do_lower_case),
                              .lowercase = bert->do_lower_case};
}

// The type of its pre-tokenizer, or of the only one in a sequence.
std::string PreTokenizerType(const JsonFields& file) {
  if (!file.Has("pre_tokenizer")) return "null";
  const JsonFields part = file.Object("pre_tokenizer");
  const std::string type = part.String("type");
  if (type != "Sequence") return type;
  const std::vector<JsonFields> steps = part.Objects("pretokenizers");
  return steps.size() == 1 ? steps[0].String("type") : type;
}

// Whether ByteLevel puts a space before a text, where the class says so in place of the file.
std::optional<bool> PrefixOfClass(const JsonFields& file, const TokenizerSettings& settings) {
  const std::optional<bool>& prefix = settings.add_prefix_space;
  return prefix.has_value() && PreTokenizerType(file) == "ByteLevel" ? prefix : std::nullopt;
}

// The rules for characters, which a class keeps of the file's normalizer, in base64.
std::string CharsmapOf(const JsonFields& file) {
  if (!file.Has("normalizer")) return "";
  const JsonFields normalizer = file.Object("normalizer");
  const bool several = normalizer.String("type") == "Sequence";
  for (const JsonFields& step :
       several ? normalizer.Objects("normalizers") : std::vector<JsonFields>{normalizer}) {
    if (step.String("type") != "Precompiled") continue;
    std::string bytes;
    if (absl::Base64Unescape(step.String("precompiled_charsmap"), &bytes)) {
      return absl::Base64Escape(bytes);
    }
    step.Fail("precompiled_charsmap", "is not base64");
  }
  return "";
}

// The settings of a tokenizer of a family of sentencepiece models, if this is one.
const FamilySettings* FindFamily(const JsonFields& file, const TokenizerSettings& settings) {
  return settings.family.has_value() && ModelType(file) == "Unigram" ? &*settings.family : nullptr;
}

// The parts that the class makes in place of the file's, as a tokenizer.json.
std::string PartsOfClass(const JsonFields& file, const ModelPart& part,
                         const TokenizerSettings& settings) {
  if (const FamilySettings* const own = FindFamily(file, settings)) {
    const auto id_of = [&](const FamilyRole& role) -> int64_t {
      const absl::string_view token = own->TokenOf(role);
      const int32_t id = part.model->FindToken(token);
      if (id == TokenTrie::kNoId) {
        file.Fail(absl::InvalidArgumentError(absl::StrCat("model.vocab has no ",
                                                          ReadableName(token), ", the ", role.field,
                                                          " of ", own->family->tokenizer_class)));
      }
      return id;
    };
    // Made in any case: the class needs its tokens.
    std::string post_processor =
        absl::StrCat(R"(,"post_processor":)", FamilyTemplate(*own->family, id_of));
    if (own->family->keeps_template && file.Has("post_processor")) post_processor.clear();
    return absl::StrCat(
        R"({"normalizer":)", FamilyNormalizer(*own->family, own->options, CharsmapOf(file)),
        R"(,"pre_tokenizer":)", FamilyPreTokenizer(*own->family, own->options), post_processor,
        R"(,"decoder":)", FamilyDecoder(*own->family, own->options), "}");
  }
  if (const std::optional<ByteLevelSettings>& own = settings.byte_level) {
    return PartsOf(*own->made, own->add_prefix_space);
  }
  if (settings.llama.has_value()) return PartsOf(*settings.llama);
  const std::optional<bool> prefix = PrefixOfClass(file, settings);
  if (!prefix.has_value()) return "{}";
  return absl::StrCat(R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":)",
                      *prefix ? "true" : "false", "}}");
}

// That the class does not read the file's model as one of another type.
void CheckType(const JsonFields& file, const TokenizerSettings& settings) {
  const std::string found = ModelType(file);
  const auto refuse = [&](absl::string_view tokenizer_class, absl::string_view wanted) {
    file.Object("model").Fail("type", absl::StrCat("is ", found, ", but ", tokenizer_class,
                                                   " of transformers takes ", wanted));
  };
  if (settings.bert.has_value() && settings.bert->refuses_bpe && found == "BPE") {
    refuse(settings.bert->tokenizer_class, "WordPiece");
  }
  if (settings.byte_level.has_value() && found != "BPE") {
    refuse(settings.byte_level->made->name, "BPE");
  }
  if (settings.llama.has_value() && found != "BPE") refuse("LlamaTokenizer", "BPE");
}

// That the file's model is the one that the class makes.
void CheckFamily(const JsonFields& file, const FamilySettings& settings, const ModelPart& part) {
  const SentencePieceFamily& family = *settings.family;
  int64_t unk_id = family.unk_id;
  for (const FamilyRole& role : family.roles) {
    if (family.finds_unk && role.field == "unk_token") {
      unk_id = part.model->FindToken(settings.TokenOf(role));
    }
  }
  const JsonFields model = file.Object("model");
  const auto check = [&](absl::string_view field, absl::string_view found,
                         absl::string_view wanted) {
    if (found == wanted) return;
    model.Fail(field, absl::StrCat("is ", found, ", but ", family.tokenizer_class,
                                   " of transformers takes ", wanted));
  };
  check("unk_id", absl::StrCat(model.Integer("unk_id", kMaxTokenId)), absl::StrCat(unk_id));
  const bool falls_back = model.Has("byte_fallback") && model.Bool("byte_fallback");
  check("byte_fallback", falls_back ? "true" : "false", "false");
}

// That the file has what transformers would put in its place.
void CheckBert(const JsonFields& file, const BertSettings& bert, const TokenizerParts& parts) {
  const auto check = [&](absl::string_view field, absl::string_view place,
                         const std::optional<std::string>& wanted, absl::string_view found) {
    if (!wanted.has_value() || *wanted == found) return;
    file.Fail(absl::InvalidArgumentError(absl::StrCat(
        place, " is ", ReadableName(found), ", but ", bert.tokenizer_class,
        " of transformers takes ", ReadableName(*wanted), " by tokenizer_config.json's ", field)));
  };
  const std::vector<TemplatePart>& single = parts.sequence.single;
  const auto is_token = [](const TemplatePart& part) {
    return part.text == TemplatePart::kSpecialToken;
  };
  const auto token = [&](const TemplatePart& part) {
    return is_token(part) ? parts.strings.Find(part.id) : "";
  };
  const JsonFields model = file.Object("model");
  const int64_t max_chars =
      model.Integer("max_input_chars_per_word", std::numeric_limits<int64_t>::max());
  check("cls_token", "the first token of post_processor", bert.cls_token, token(single.front()));
  check("sep_token", "the last token of post_processor", bert.sep_token, token(single.back()));
  if (bert.sequence_template.has_value() &&
      (!is_token(single.front()) || !is_token(single.back()))) {
    file.Fail(absl::InvalidArgumentError(
        absl::StrCat("post_processor puts no special tokens around a text, but ",
                     bert.tokenizer_class, " of transformers does")));
  }
  check("unk_token", "model.unk_token", bert.unk_token, model.String("unk_token"));
  check("tokenizer_class", "model.continuing_subword_prefix", "##",
        model.String("continuing_subword_prefix"));
  check("tokenizer_class", "model.max_input_chars_per_word", "100", absl::StrCat(max_chars));
  check("tokenizer_class", "the pre_tokenizer", "BertPreTokenizer", PreTokenizerType(file));
}

// The tokens around texts as transformers puts them, with the first and the last of the file's.
SequenceTemplate SequenceOf(const BertSettings& bert, const SequenceTemplate& file) {
  TemplatePart cls = file.single.front(), sep = file.single.back();
  cls.segment_id = sep.segment_id = 0;
  return bert.sequence_template == BertSettings::Template::kRoberta ? MakeRobertaTemplate(cls, sep)
                                                                    : MakeBertTemplate(cls, sep);
}

// Texts, each with the token `end` behind it.
SequenceTemplate EndedBy(const JsonFields& file, absl::string_view end,
                         const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens) {
    if (token.content != end) continue;
    const TemplatePart first{.id = token.id}, second{.id = token.id, .segment_id = 1};
    return {.single = {{.text = 0}, first},
            .pair = {{.text = 0}, first, {.text = 1, .segment_id = 1}, second},
            .trims = {}};
  }
  file.Fail(absl::InvalidArgumentError(
      absl::StrCat("added_tokens has no ", ReadableName(end), ", the eos_token")));
  return {};
}

// The object that has the `part` that counts. What the class makes may be null.
const JsonFields& With(absl::string_view part, const JsonFields& made, const JsonFields& file) {
  const std::vector<std::string> parts = made.Keys();
  return std::find(parts.begin(), parts.end(), part) != parts.end() ? made : file;
}

// That a first piece can be told as the library tells it.
void CheckStart(const JsonFields& file, const TokenizerParts& parts) {
  if (parts.pre_tokenizer == nullptr || !parts.pre_tokenizer->needs_start()) return;
  const bool normalized = parts.normalizer != nullptr;
  const bool kept = !normalized || parts.normalizer->keeps_start();
  if (kept && !parts.pre_tokenizer->loses_start(normalized)) return;
  file.Fail(absl::UnimplementedError(
      absl::StrCat("pre_tokenizer prepend_scheme 'first' is not supported with ",
                   kept ? "the steps before it" : "this normalizer")));
}

bool TruncatesLeft(const JsonFields& file) {
  if (!file.Has("truncation")) return false;
  const JsonFields truncation = file.Object("truncation");
  if (!truncation.Has("direction")) return false;
  const std::string direction = truncation.String("direction");
  if (file.ok() && direction != "Left" && direction != "Right") {
    truncation.Fail("direction", "is neither Left nor Right");
  }
  return direction == "Left";
}

// The members of `made` count in place of the file's.
TokenizerParts ReadParts(const JsonFields& file, const JsonFields& made, ModelPart model,
                         const TokenizerSettings& settings) {
  TokenizerParts parts;
  if (file.Has("version") && file.String("version") != "1.0") {
    file.Fail(UnsupportedPart("version", file.String("version"), "1.0"));
  }
  const BertSettings* const bert = FindBert(file, settings);
  const auto with = [&](absl::string_view part) -> const JsonFields& {
    return With(part, made, file);
  };
  parts.normalizer = ReadNormalizer(with("normalizer"), settings.lowercases, NormalizerOf(bert));
  parts.pre_tokenizer = ReadPreTokenizer(with("pre_tokenizer"));
  parts.sequence = ReadSequenceTemplate(with("post_processor"), kMaxTokenId);
  if (const std::optional<bool> prefix = PrefixOfClass(file, settings)) {
    for (OffsetTrim& trim : parts.sequence.trims) trim.add_prefix_space = *prefix;
  }
  parts.truncates_left = TruncatesLeft(file);
  CheckStart(file, parts);
  if (!file.ok()) return {};
  parts.added_tokens = ReadAddedTokens(file, model);
  if (!file.ok()) return {};
  AddNamedTokens(settings, model, parts.added_tokens);
  if (settings.end_token.has_value()) {
    parts.sequence = EndedBy(file, *settings.end_token, parts.added_tokens);
    if (!file.ok()) return {};
  }
  parts.model = std::move(model.model);
  parts.vocab = CountIds(parts, model.vocabulary);
  parts.strings = ListStrings(parts, model.vocabulary);
  if (bert != nullptr) {
    CheckBert(file, *bert, parts);
    if (!file.ok()) return {};
    if (bert->sequence_template.has_value()) parts.sequence = SequenceOf(*bert, parts.sequence);
  }
  if (settings.has_segments) return parts;
  for (TemplatePart& part : parts.sequence.single) part.segment_id = 0;
  for (TemplatePart& part : parts.sequence.pair) part.segment_id = 0;
  return parts;
}

}  // namespace

absl::StatusOr<TokenizerParts> ParseTokenizerJson(absl::string_view contents,
                                                  const TokenizerSettings& of_folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode file, ParseJson(contents, "the file", kLimits));
  absl::Status status;
  const JsonFields fields(file, status);
  TokenizerSettings settings = of_folder;
  if (!MakesLlama(fields)) settings.llama.reset();
  CheckType(fields, settings);
  ATTENDANT_RETURN_IF_ERROR(status);
  ModelPart model = ReadModel(fields);
  ATTENDANT_RETURN_IF_ERROR(status);
  if (settings.llama.has_value()) CheckLlama(fields, model);
  if (settings.byte_level.has_value()) CheckModel(fields, *settings.byte_level->made, model);
  if (const FamilySettings* const family = FindFamily(fields, settings)) {
    CheckFamily(fields, *family, model);
  }
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode made,
                             ParseJson(PartsOfClass(fields, model, settings), "the class's parts"));
  const JsonFields made_fields(made, status);
  TokenizerParts parts = ReadParts(fields, made_fields, std::move(model), settings);
  ATTENDANT_RETURN_IF_ERROR(status);
  std::unique_ptr<Decoder> decoder = ReadDecoder(With("decoder", made_fields, fields));
  if (status.ok()) {
    parts.decoder = std::move(decoder);
  } else {
    parts.decoder = status;
  }
  return parts;
}

}  // namespace attendant
