// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace attendant {

// The folders of folder_fuzz.cc, in one another's places.
inline constexpr absl::string_view kFolderRoot = "tests/golden/";

// The files that it replaces, or adds to a folder that has no such file.
inline constexpr absl::string_view kFolderFiles[] = {
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "modules.json",
    "router_config.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "chat_template.jinja",
    "query_token_weights.txt",
    "idf.json",
    "model.safetensors.index.json",
    "1_Pooling/config.json",
    "1_Dense/config.json",
    "1_SpladePooling/config.json",
    "2_Dense/config.json",
    "2_MultiVectorMask/config.json",
    "3_Normalize/config.json",
    "5_LayerNorm/config.json",
    "document_1_SpladePooling/config.json",
    "query_0_SparseStaticEmbedding/config.json",
};

}  // namespace attendant
