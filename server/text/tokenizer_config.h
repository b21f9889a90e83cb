// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_folder.h"
#include "server/text/base/literals.h"
#include "server/text/byte_level_class.h"
#include "server/text/esm/esm_vocabulary.h"
#include "server/text/llama_class.h"
#include "server/text/sentencepiece/families.h"
#include "server/text/sentencepiece/family_parts.h"

namespace attendant {

// The settings with which transformers makes a tokenizer of BERT's kind, whatever tokenizer.json
// says. A token that is not set is the one of tokenizer.json.
struct BertSettings {
  std::string tokenizer_class;
  bool do_lower_case = true;
  std::optional<bool> strip_accents{};  // none: as do_lower_case
  bool tokenize_chinese_chars = true;
  std::optional<std::string> cls_token{}, sep_token{}, unk_token{};
  // The tokens around texts; none: as tokenizer.json has them.
  enum class Template { kBert, kRoberta };
  std::optional<Template> sequence_template{};
  bool refuses_bpe = false;  // the class would read it as a WordPiece
};

// The settings with which transformers makes a tokenizer of a family of sentencepiece models,
// whatever tokenizer.json says but for the vocabulary and the rules for characters.
struct FamilySettings {
  const SentencePieceFamily* family = nullptr;
  FamilyOptions options{};
  std::map<std::string, std::string, std::less<>> tokens{};  // by their role, as files name them

  // The one that a file names, else the family's.
  absl::string_view TokenOf(const FamilyRole& role) const {
    const auto found = tokens.find(role.field);
    return found == tokens.end() ? role.token : found->second;
  }
};

// The settings with which transformers makes a byte-level tokenizer, whatever tokenizer.json says.
struct ByteLevelSettings {
  const ByteLevelClass* made = nullptr;
  bool add_prefix_space = false;
};

// The settings of a folder's tokenizer beside tokenizer.json.
struct TokenizerSettings {
  bool lowercases = false;                 // texts become lower case before the normalizer
  std::optional<BertSettings> bert{};      // of a WordPiece model: these count
  std::optional<FamilySettings> family{};  // of a Unigram model: these count
  std::optional<ByteLevelSettings> byte_level{};
  std::optional<LlamaSettings> llama{};    // of a file that MakesLlama: these count
  std::optional<EsmTokens> esm{};          // of vocab.txt, where the class is ESM's
  std::optional<std::string> end_token{};  // behind each text, whatever the file puts there
  std::vector<Literal> named_tokens{};     // found in texts too, where the vocabulary has them
  bool splits_special_tokens = false;      // special tokens in a text are text
  std::optional<bool> add_prefix_space{};  // of ByteLevel: counts in place of tokenizer.json's
  bool has_segments = true;                // false: the model gets segment 0 for every token
};

// As AutoTokenizer of transformers 5: the class is tokenizer_class of tokenizer_config.json, else
// of config.json, else the one of model_type; ModernBERT's and Mistral's are always the general
// one, Qwen2's is its own. BertTokenizer and those derived from it make their normalizer anew, of
// do_lower_case, strip_accents and tokenize_chinese_chars, and, where tokenizer_config.json names
// the class, the tokens around texts; their special tokens are those of special_tokens_map.json,
// where that counts, else of tokenizer_config.json. The classes of XLM-R, CamemBERT, T5 and DeBERTa
// v2 make all their parts anew; of the normalizer they keep the rules of the sentencepiece model,
// DeBERTa's not even these. Those of GPT-2, Qwen2 and Llama make all but the tokens around texts
// anew. RobertaTokenizer makes ByteLevel anew. The code that comes with the tokenizers of gte-Qwen2
// puts eos_token behind each text, where add_eos_token says so. What named_tokens.h says is found
// in texts beside the added tokens of tokenizer.json, none of them that is special with
// split_special_tokens. A model gets segments where model_input_names has token_type_ids, or the
// class says so. A folder without class and model_type has the defaults. INVALID_ARGUMENT for a
// file that is not valid.
absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const JsonFolder& folder);

}  // namespace attendant
