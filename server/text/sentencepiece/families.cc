// SPDX-License-Identifier: Apache-2.0
#include "server/text/sentencepiece/families.h"

namespace attendant {
namespace {

// As fairseq numbers them.
constexpr FamilyToken kXlmRobertaFirst[] = {{"<s>", 0}, {"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}};
constexpr FamilyToken kCamembertFirst[] = {
    {"<s>NOTUSED", 0}, {"<pad>", 0}, {"</s>NOTUSED", 0}, {"<unk>", 0}, {"<unk>NOTUSED", -100}};
constexpr FamilyToken kMask[] = {{"<mask>", 0}};
constexpr absl::string_view kXlmRobertaPieces[] = {"<unk>", "<s>", "</s>"};
constexpr absl::string_view kCamembertPieces[] = {"<unk>"};
constexpr absl::string_view kCamembertExtras[] = {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"};
constexpr absl::string_view kT5Pieces[] = {"<pad>", "</s>", "<unk>"};
constexpr absl::string_view kAlbertPieces[] = {"<pad>", "<unk>", "[CLS]", "[SEP]"};
constexpr absl::string_view kDebertaPieces[] = {"[PAD]", "[CLS]", "[SEP]", "[UNK]"};

constexpr FamilyRole kRobertaRoles[] = {
    {"bos_token", "<s>"},   {"eos_token", "</s>"},  {"sep_token", "</s>"},   {"cls_token", "<s>"},
    {"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"mask_token", "<mask>"}};
constexpr FamilyRole kT5Roles[] = {
    {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
constexpr FamilyRole kAlbertRoles[] = {
    {"bos_token", "[CLS]"}, {"eos_token", "[SEP]"}, {"sep_token", "[SEP]"},  {"cls_token", "[CLS]"},
    {"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"mask_token", "[MASK]"}};
constexpr FamilyRole kDebertaRoles[] = {
    {"bos_token", "[CLS]"}, {"eos_token", "[SEP]"}, {"sep_token", "[SEP]"},  {"cls_token", "[CLS]"},
    {"unk_token", "[UNK]"}, {"pad_token", "[PAD]"}, {"mask_token", "[MASK]"}};

constexpr absl::string_view kRobertaSingle = "bos_token $A eos_token";
constexpr absl::string_view kRobertaPair = "bos_token $A eos_token eos_token $B eos_token";

const SentencePieceFamily kFamilies[] = {
    {.tokenizer_class = "AlbertTokenizer",
     .model_type = "albert",
     .first = {},
     .expected = kAlbertPieces,
     .dropped = 0,
     .last = {},
     .extras = {},
     .extra_ids = 0,
     .unk_id = 1,
     .finds_unk = false,
     .mask_strips_left = false,
     .cleans_spaces = false,
     .cleans_letters = true,
     .without_prefix = "never",
     .roles = kAlbertRoles,
     .keeps_template = true,
     .single = "cls_token $A sep_token",
     .pair = "cls_token $A sep_token $B:1 sep_token:1"},
    {.tokenizer_class = "XLMRobertaTokenizer",
     .model_type = "xlm-roberta",
     .first = kXlmRobertaFirst,
     .expected = kXlmRobertaPieces,
     .dropped = 3,
     .last = kMask,
     .extras = {},
     .extra_ids = 0,
     .unk_id = 3,
     .finds_unk = false,
     .mask_strips_left = false,
     .cleans_spaces = false,
     .without_prefix = "never",
     .roles = kRobertaRoles,
     .single = kRobertaSingle,
     .pair = kRobertaPair},
    {.tokenizer_class = "CamembertTokenizer",
     .model_type = "camembert",
     .first = kCamembertFirst,
     .expected = kCamembertPieces,
     .dropped = 1,
     .last = kMask,
     .extras = kCamembertExtras,
     .extra_ids = 0,
     .unk_id = 3,
     .finds_unk = true,
     .mask_strips_left = true,
     .cleans_spaces = false,
     .without_prefix = "never",
     .roles = kRobertaRoles,
     .single = kRobertaSingle,
     .pair = kRobertaPair},
    {.tokenizer_class = "T5Tokenizer",
     .model_type = "t5",
     .first = {},
     .expected = kT5Pieces,
     .dropped = 0,
     .last = {},
     .extras = {},
     .extra_ids = 100,
     .unk_id = 2,
     .finds_unk = false,
     .mask_strips_left = false,
     .cleans_spaces = false,
     .without_prefix = "always",
     .roles = kT5Roles,
     .single = "$A eos_token",
     .pair = "$A eos_token $B eos_token"},
    {.tokenizer_class = "DebertaV2Tokenizer",
     .model_type = "deberta-v2",
     .first = {},
     .expected = kDebertaPieces,
     .dropped = 0,
     .last = {},
     .extras = {},
     .extra_ids = 0,
     .unk_id = 3,
     .finds_unk = true,
     .mask_strips_left = false,
     .cleans_spaces = true,
     .without_prefix = "first",
     .roles = kDebertaRoles,
     .single = "cls_token $A sep_token",
     .pair = "cls_token $A sep_token $B:1 sep_token:1"},
};

}  // namespace

const SentencePieceFamily* FindSentencePieceFamily(absl::string_view tokenizer_class,
                                                   absl::string_view model_type) {
  for (const SentencePieceFamily& family : kFamilies) {
    if (tokenizer_class.empty() ? family.model_type == model_type
                                : family.tokenizer_class == tokenizer_class) {
      return &family;
    }
  }
  return nullptr;
}

}  // namespace attendant
