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
constexpr absl::string_view kT5Pieces[] = {"<pad>", "</s>", "<unk>"};
constexpr absl::string_view kDebertaPieces[] = {"[PAD]", "[CLS]", "[SEP]", "[UNK]"};

constexpr FamilyRole kRobertaRoles[] = {
    {"bos_token", "<s>"},   {"eos_token", "</s>"},  {"sep_token", "</s>"},   {"cls_token", "<s>"},
    {"unk_token", "<unk>"}, {"pad_token", "<pad>"}, {"mask_token", "<mask>"}};
constexpr FamilyRole kT5Roles[] = {
    {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
constexpr FamilyRole kDebertaRoles[] = {
    {"bos_token", "[CLS]"}, {"eos_token", "[SEP]"}, {"sep_token", "[SEP]"},  {"cls_token", "[CLS]"},
    {"unk_token", "[UNK]"}, {"pad_token", "[PAD]"}, {"mask_token", "[MASK]"}};

constexpr absl::string_view kRobertaSingle = "<s> $A </s>";
constexpr absl::string_view kRobertaPair = "<s> $A </s> </s> $B </s>";

const SentencePieceFamily kFamilies[] = {
    {.tokenizer_class = "XLMRobertaTokenizer",
     .model_type = "xlm-roberta",
     .first = kXlmRobertaFirst,
     .expected = kXlmRobertaPieces,
     .dropped = 3,
     .last = kMask,
     .extra_ids = 0,
     .unk_id = 3,
     .mask_strips_left = false,
     .cleans_spaces = false,
     .roles = kRobertaRoles,
     .single = kRobertaSingle,
     .pair = kRobertaPair},
    {.tokenizer_class = "CamembertTokenizer",
     .model_type = "camembert",
     .first = kCamembertFirst,
     .expected = kCamembertPieces,
     .dropped = 1,
     .last = kMask,
     .extra_ids = 0,
     .unk_id = 3,
     .mask_strips_left = true,
     .cleans_spaces = false,
     .roles = kRobertaRoles,
     .single = kRobertaSingle,
     .pair = kRobertaPair},
    {.tokenizer_class = "T5Tokenizer",
     .model_type = "t5",
     .first = {},
     .expected = kT5Pieces,
     .dropped = 0,
     .last = {},
     .extra_ids = 100,
     .unk_id = 2,
     .mask_strips_left = false,
     .cleans_spaces = false,
     .roles = kT5Roles,
     .single = "$A </s>",
     .pair = "$A </s> $B </s>"},
    {.tokenizer_class = "DebertaV2Tokenizer",
     .model_type = "deberta-v2",
     .first = {},
     .expected = kDebertaPieces,
     .dropped = 0,
     .last = {},
     .extra_ids = 0,
     .unk_id = 3,
     .mask_strips_left = false,
     .cleans_spaces = true,
     .roles = kDebertaRoles,
     .single = "[CLS] $A [SEP]",
     .pair = "[CLS] $A [SEP] $B:1 [SEP]:1"},
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
