// SPDX-License-Identifier: Apache-2.0
#include "server/text/byte_level_class.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "server/text/base/byte_characters.h"
#include "server/text/base/token_trie.h"
#include "server/text/unicode/readable.h"

namespace attendant {
namespace {

constexpr absl::string_view kEndOfText = "<|endoftext|>";
constexpr FamilyRole kGpt2Roles[] = {
    {"unk_token", kEndOfText}, {"bos_token", kEndOfText}, {"eos_token", kEndOfText}};
constexpr FamilyRole kQwen2Roles[] = {
    {"unk_token", kEndOfText}, {"eos_token", kEndOfText}, {"pad_token", kEndOfText}};

// Of transformers 5.23.
constexpr ByteLevelClass kByteLevelClasses[] = {
    {"GPT2Tokenizer", "null", R"({"type":"ByteLevel","add_prefix_space":$0})", kGpt2Roles},
    {"Qwen2Tokenizer", R"({"type":"NFC"})",
     R"({"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Isolated","invert":false,)"
     R"("pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|)"
     R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},)"
     R"({"type":"ByteLevel","add_prefix_space":$0,"use_regex":false}]})",
     kQwen2Roles},
};

bool HasAllBytes(const TokenModel& model) {
  for (int byte = 0; byte < 256; ++byte) {
    const char value = static_cast<char>(byte);
    std::string character;
    AppendByteCharacters({&value, 1}, character);
    if (model.FindToken(character) == TokenTrie::kNoId) return false;
  }
  return true;
}

}  // namespace

const ByteLevelClass* FindByteLevelClass(absl::string_view name) {
  for (const ByteLevelClass& one : kByteLevelClasses) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string PartsOf(const ByteLevelClass& made, bool add_prefix_space) {
  return absl::StrCat(R"({"normalizer":)", made.normalizer, R"(,"pre_tokenizer":)",
                      absl::Substitute(made.pre_tokenizer, add_prefix_space ? "true" : "false"),
                      R"(,"decoder":{"type":"ByteLevel"}})");
}

void CheckModel(const JsonFields& file, const ByteLevelClass& made, const ModelPart& part) {
  const JsonFields model = file.Object("model");
  const auto refuse = [&](absl::string_view field, absl::string_view found,
                          absl::string_view wanted) {
    model.Fail(field,
               absl::StrCat("is ", found, ", but ", made.name, " of transformers takes ", wanted));
  };
  for (const absl::string_view field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::string affix = model.Has(field) ? model.String(field) : "";
    if (!affix.empty()) refuse(field, ReadableName(affix), "none");
  }
  if (model.Has("ignore_merges") && model.Bool("ignore_merges")) {
    refuse("ignore_merges", "true", "false");
  }
  if (HasAllBytes(*part.model)) return;
  if (model.Has("unk_token")) refuse("unk_token", ReadableName(model.String("unk_token")), "none");
  if (model.Has("byte_fallback") && model.Bool("byte_fallback")) {
    refuse("byte_fallback", "true", "false");
  }
}

}  // namespace attendant
