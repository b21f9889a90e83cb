// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/io/json_folder.h"

namespace attendant {

// A tokenizer.json, and the file that it was made of.
struct ConvertedTokenizer {
  std::string json;
  std::string path;
};

// Makes the tokenizer.json that transformers 5 would make of `folder`'s sentencepiece model, the
// first of `files` that is there. The family says how ids,
// special tokens and normalization differ from the model's own: tokenizer_class of
// tokenizer_config.json, else model_type of config.json; XLM-R, CamemBERT, T5 and DeBERTa v2 are
// known. Of tokenizer_config.json count the special tokens, extra_special_tokens (or
// additional_special_tokens), added_tokens_decoder, add_prefix_space, do_lower_case, split_by_punct
// and extra_ids; of special_tokens_map.json the special tokens and extra_special_tokens, unless
// there is an added_tokens_decoder. Tokens that the model does not have get the ids behind all
// others. NOT_FOUND without such a file; INVALID_ARGUMENT, naming the file, for one that is not
// valid; UNIMPLEMENTED for a BPE model, another family, and options that the conversion would
// ignore.
absl::StatusOr<ConvertedTokenizer> ConvertSentencePiece(const JsonFolder& folder,
                                                        absl::Span<const char* const> files);

}  // namespace attendant
