# SPDX-License-Identifier: Apache-2.0
TESTS = ["text_test"]
MUTANTS = {
    "server/text/pipeline.cc": [
        ("room + 1", "room"),
        ("in_chunks_ && normalized_tokens_.empty()", "in_chunks_"),
        ("options.max_tokens < static_cast<int64_t>(num_special)", "options.max_tokens <= static_cast<int64_t>(num_special)"),
        ("longer.values.resize(room - shorter.values.size());", "longer.values.resize(half);"),
        ("const bool count_all = !options.truncate || texts.size() > 1;", "const bool count_all = !options.truncate;"),
        ("token.normalized ? normalized_tokens_ : raw_tokens_", "raw_tokens_"),
        ('text.find_first_of(" \\n", kChunkBytes)', "kChunkBytes"),
    ],
    "server/text/base/byte_trie.cc": [
        ("if (ids_[node] != kNoId) match = {ids_[node], i + 1};",
         "if (ids_[node] != kNoId && match.id == kNoId) match = {ids_[node], i + 1};"),
        ("if (ids_[node] != kNoId) return false;", ""),
    ],
    "server/text/normalizers/bert_normalizer.cc": [
        ('fields.Has("strip_accents") ? fields.Bool("strip_accents") : config.lowercase', "config.lowercase"),
        ("if (IsWhitespace(character)) character = ' ';", ""),
    ],
    "server/text/sequence_template.cc": [
        ("last.segment_id = 1;", ""),
        ("CountText(sequence.pair, 1) != 1", "false"),
        ("num_texts != 1", "num_texts == 0"),
    ],
    "server/text/models/token_model.cc": [
        ("vocab.Fail(token, \"has another token's id\");", ""),
    ],
    "server/text/pre_tokenizers/word_reader.cc": [
        ("if (role == Role::kPunctuation) break;", ""),
    ],
    "server/text/models/wordpiece.cc": [
        ("std::count_if(word.begin(), word.end(), starts_character) > max_input_chars_per_word_", "true"),
        ("node = continuing_node_;", ""),
    ],
    "server/text/unicode/characters.cc": [
        ("in(0x20000, 0x2A6DF)", "in(0x20001, 0x2A6DF)"),
    ],
}
EQUIVALENT = [
    ("server/text/added_tokens.cc", "c < 0x80 ? 1 : c < 0x800 ? 2 : 3", "1",
     "inside a character, PreviousCharacter finds that character again: byte by byte the loop comes to its beginning"),
    ("server/text/token_strings.cc", "if (!entries_.empty() && entries_.back().id == id) continue;", "",
     "a search finds the first of the entries of one id, which is the one that stays; the others cost memory only"),
]
