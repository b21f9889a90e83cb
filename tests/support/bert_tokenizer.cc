// SPDX-License-Identifier: Apache-2.0
#include "tests/support/bert_tokenizer.h"

namespace attendant {
namespace {

using nlohmann::json;

constexpr char kAroundTheVocabulary[] = R"({
  "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                 "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
             {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
    "special_tokens": {}},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": {}}
})";

}  // namespace

json AddedTokenJson(const std::string& content, int32_t id, bool special) {
  return {{"id", id},        {"content", content},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", !special}, {"special", special}};
}

json BertTokenizerJson(const std::vector<std::string>& vocab) {
  json file = json::parse(kAroundTheVocabulary);
  for (int32_t id = 0; const std::string& token : vocab) {
    if (token.front() == '[') file["added_tokens"].push_back(AddedTokenJson(token, id, true));
    file["model"]["vocab"][token] = id++;
  }
  json& special_tokens = file["post_processor"]["special_tokens"];
  for (const char* token : {"[CLS]", "[SEP]"}) {
    special_tokens[token] = {{"id", token},
                             {"ids", json::array({file["model"]["vocab"].at(token)})},
                             {"tokens", json::array({token})}};
  }
  return file;
}

}  // namespace attendant
