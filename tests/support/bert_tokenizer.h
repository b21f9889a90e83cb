// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attendant {

// An entry of added_tokens. Only what is not special is found in normalized text.
nlohmann::json AddedTokenJson(const std::string& content, int32_t id, bool special);

// A tokenizer.json of BERT's kind: lower case, WordPiece, "[CLS] A [SEP]" of segment 0 and
// "[CLS] A [SEP] B [SEP]", whose B is of segment 1. A token's place in `vocab` is its id; those in
// brackets are special. REQUIRES: [UNK], [CLS] and [SEP] are among them.
nlohmann::json BertTokenizerJson(const std::vector<std::string>& vocab);

}  // namespace attendant
