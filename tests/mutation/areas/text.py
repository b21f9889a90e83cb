# SPDX-License-Identifier: Apache-2.0
TESTS = ["text_test"]
MUTANTS = {
    "server/text/pipeline.cc": [
        ("in_chunks_ && normalized_tokens_.empty()", "in_chunks_"),
        ("options.max_tokens < static_cast<int64_t>(num_special)", "options.max_tokens <= static_cast<int64_t>(num_special)"),
        ("longer.Cut(«room - shorter.values.size()»);", "room / 2"),
        ("kept >= room", "kept > room"),
        ("side == TruncationSide::kRight", "true"),
        ("token.normalized ? normalized_tokens_ : raw_tokens_", "raw_tokens_"),
        ('text.find_first_of(" \\n", kChunkBytes)', "kChunkBytes"),
        ("ids.normalized_room -= normalized.text.size();", ""),
        ("dropped = «std::min(found(), most) - values.size()»;", "0"),
        ("dropped += values.size() - kept;", ""),
        ("sequence.subspan(special_tokens().before, 1)", "sequence.subspan(0, 1)"),
        ("decoded_strings_[token.id] = token.content;", ""),
        ("skip_special_tokens && «special_contents_.contains(token)»", "special_ids_.contains(id)"),
    ],
    "server/text/chat_template/chat_template.cc": [
        ("++steps_ <= kMaxTemplateSteps", "true"),
        ("work_ <= kMaxTemplateWork", "true"),
        ("scopes_.pop_back();", ""),
        ("__builtin_add_overflow(a.number, b.number, &sum)", "__builtin_add_overflow(a.number, b.number, &sum) && false"),
    ],
    "server/text/chat_template/chat_parser.cc": [
        ("BeginsValue() && !goes_on", "false"),
    ],
    "server/text/chat_template/chat_tokens.cc": [
        ("end > text.data() && IsPythonSpace(PreviousCharacter(end))", "false"),
        ("begin > 0 || starts_line_", "begin > 0"),
        ("kind != '\\0' && sign == '-'", "false"),
    ],
    "server/text/chat_template/chat_value.cc": [
        ("CountBytes(text) + CountBytes(more) > kMaxRenderedBytes", "false"),
        ("value.number + 1 == value.count", "true"),
        ("value.kind != ValueKind::kLazyList", "true"),
    ],
    "server/text/unicode/pattern.cc": [
        ("can_fail && item.max - item.min > 1", "false"),
        ("last = behind.first_failure;", "last = least;"),
        ("range.second >= 0x80", "false"),
        ("std::max(apart.back().second, last)", "last"),
        ("character <= std::prev(behind)->second", "character < std::prev(behind)->second"),
        ("whitespace ? «whitespace_» : non_whitespace_", "non_whitespace_"),
        ("done < text.size() && out.size() <= max_bytes", "done < text.size()"),
    ],
    "server/text/unicode/pattern_parser.cc": [
        ("set.num_ranges() <= Pattern::kMaxRanges", "true"),
        ("ignore_case && MayFold(tail)", "false"),
        ("ignore_case && AtClass()", "false"),
        ('absl::StrContains(«"SpP"», absl::string_view(position_ + 1, 1))', '"Sp"'),
        ("--depth_;", ""),
        ("++depth_ > Pattern::kMaxGroupDepth", "depth_++ > Pattern::kMaxGroupDepth"),
        ("tries += «item.max == Pattern::kMany ? item.min + 1 : item.max»;", "1"),
    ],
    "server/text/tokenizer_config.cc": [
        ("settings.has_segments = «is_known && known->has_segments»;", "true"),
        ('ATTENDANT_RETURN_IF_ERROR(config.Read("tokenizer_class", name));', ""),
        ("found = found || name == \"token_type_ids\";", "found = true;"),
    ],
    "server/text/tokenizer_json.cc": [
        ('settings.family.has_value() && «ModelType(file) == "Unigram"»', "true"),
        ('prefix.has_value() && «PreTokenizerType(file) == "ByteLevel"»', "true"),
        ("trim.add_prefix_space = *prefix;", ""),
        ('!= parts.end() ? «made» : file', "file"),
        ("unk_id = part.model->FindToken(settings.TokenOf(role));", ""),
        ("if («own->family->keeps_template && file.Has(\"post_processor\")»)", "false"),
        ("settings.splits_special_tokens && «token.special»", "true"),
        ("id == TokenTrie::kNoId || !known.insert(literal.text).second", "!known.insert(literal.text).second"),
        ("kept && !parts.pre_tokenizer->loses_start(normalized)", "kept"),
    ],
    "server/text/normalizers/precompiled.cc": [
        ("position < end && «more()»;", "true"),
    ],
    "server/text/base/token_files.cc": [
        ('config.Has("added_tokens_decoder")', "false"),
    ],
    "server/text/base/growth.cc": [
        ("growth.times > max_times", "false"),
        ("growth.steps > static_cast<int64_t>(kMaxPartsInSequence)", "false"),
    ],
    "server/text/added_tokens.cc": [
        ("if (place.token->lstrip) place.begin = std::max(place.begin, from);", ""),
    ],
    "server/text/base/token_trie.cc": [
        ("if («place.id != kNoId») match = {", "place.id != kNoId && match.id == kNoId"),
        ("if (*id_there != kNoId) return false;", ""),
    ],
    "server/text/normalizers/bert_normalizer.cc": [
        ('fields.Has("strip_accents") ? fields.Bool("strip_accents") : config.lowercase', "config.lowercase"),
        ("if (IsWhitespace(character)) character = ' ';", ""),
    ],
    "server/text/sequence_template.cc": [
        ("last.segment_id = 1;", ""),
        ("CountText(sequence.pair, 1) != 1", "false"),
        ("num_texts != 1", "num_texts == 0"),
        ("parts.size() <= kMaxTemplateParts", "parts.size() < kMaxTemplateParts"),
    ],
    "server/text/unicode/utf8.cc": [
        ("(static_cast<unsigned char>(byte) & 0xC0) != 0x80", "true"),
    ],
    "server/text/unicode/readable.cc": [
        ("character >= 0xA0", "character >= 0x80"),
        ("U8_SET_CP_START(bytes, 0, kept);", ""),
    ],
    "server/text/sentencepiece/model_proto.cc": [
        ("field.value > message_.size() - at()", "false"),
        ("FindInvalidUtf8(piece.text).has_value()", "false"),
        ("piece.text.empty()", "false"),
    ],
    "server/text/normalizers/normalizer.cc": [
        ('if (type == "BertNormalizer") return «fields.Bool("lowercase")»;', "true"),
        ('if (type != "Sequence") return «type == "Lowercase"»;', "true"),
        ("«has_own» ? Lowercases", "false"),
    ],
    "server/text/sentencepiece/converter.cc": [
        ("piece.type != PieceType::kUserDefined", "true"),
        ("size_t i = «family_.dropped»;", "0"),
    ],
    "server/text/sentencepiece/convert.cc": [
        ("model.model_type != kUnigram", "false"),
        ("converter.IdOf(text) == id", "true"),
        ('absl::StripSuffix(name, "Fast")', "name"),
        ("options.keeps_own_literals = «!said»;", "true"),
        ("«!names.empty()») return Unsupported", "true"),
    ],
    "server/text/sentencepiece/family_parts.cc": [
        ("charsmap.empty()", "true"),
        ("options.add_prefix_space ? \"always\" : «family.without_prefix»", "\"never\""),
        ("options.do_lower_case.value_or(«true»)", "false"),
    ],
    "server/text/base/literals.cc": [
        ("return !names.empty();", "return true;"),
        ("if (found.empty()) continue;", ""),
        ("«by_id[id]», ReadAdded", "by_id[static_cast<int64_t>(by_id.size())]"),
    ],
    "server/text/esm/esm_vocabulary.cc": [
        ("if (literal.special) special.insert(literal.text);", ""),
        ("«endless && !map.Has(\"eos_token\")»", "false"),
        ("HasWhitespace(line)", "false"),
        (r'''R"(],"pre_tokenizer":{"type":"Split","pattern":{"Regex":"[\\s\u001c-\u001f]+"},)"''',
         r'''R"(],"pre_tokenizer":{"type":"Split","pattern":{"Regex":"[\\s\u001c-\u001d]+"},)"'''),
    ],
    "server/text/named_tokens.cc": [
        ("if («!tokenizer_config.Has(kAddedTokens)») {", "true"),
        ("if («said») return", "false"),
    ],
    "server/text/byte_level_class.cc": [
        ("if (HasAllBytes(*part.model)) return;", ""),
        ('add_prefix_space ? "true" : "false"', '"false"'),
    ],
    "server/text/base/character_index.cc": [
        ("count == character && «IsBegin(text_[i]) == 1»", "true"),
        ("if (text.size() % kBlockBytes == 0) before_.push_back(count);", ""),
    ],
    "server/text/text_offsets.cc": [
        ("(i == 0 && trim.starts_with_text[text])", "false"),
        ("(i == 0 && trim.starts_with_text[text]) || «offset.begin == 0»;", "false"),
        ("piece.sources[span.end - 1]", "piece.sources[span.begin]"),
        ("last + CharacterBytes(text_[last])", "last + 1"),
        ("spaces.all = spaces.all && space;", "spaces.all = space;"),
        ("if (trims_) KeepSide(room, side, spaces_);", ""),
        ("«end <= bytes» ? character_of_byte_[end - 1]", "false"),
    ],
    "server/text/unicode/form_edits.cc": [
        ("*last_class_ >= part.combining_class", "false"),
        ("i > 0 ? 1 : 0", "0"),
    ],
    "server/text/models/token_model.cc": [
        ('{"unk_id", «"Unigram"»}', '"WordPiece"'),
        ('std::pair{"merges", «"BPE"»}', '"Unigram"'),
        ("vocab.Fail(token, \"has another token's id\");", ""),
    ],
    "server/text/pre_tokenizers/word_reader.cc": [
        ("if (role == Role::kPunctuation) break;", ""),
    ],
    "server/text/models/wordpiece.cc": [
        ("CountCharacters(word) > max_input_chars_per_word_", "true"),
        ("node = continuing_node_;", ""),
    ],
    "server/text/models/short_merge.cc": [
        ("rights | Bit(left)", "rights"),
        ("if (before == 0) continue;", "continue;"),
    ],
    "server/text/models/bpe.cc": [
        ("config_.ignore_merges || «IsWhole(id)»", "true"),
        ("if (symbols[count] == kNoId) return false;", ""),
    ],
    "server/text/unicode/characters.cc": [
        ("in(0x20000, 0x2A6DF)", "in(0x20001, 0x2A6DF)"),
        ("if («character == 0x1CF2 || character == 0x1CF3») return true;", "false"),
    ],
}
EQUIVALENT = [
    ("server/text/unicode/pattern.cc", "position < first_failure && follows(position, first_failure)",
     "position < first_failure",
     "items are tried at places that fall one by one; over one that is left out the item before cannot end"),
    ("server/text/normalizers/normalizer.cc", "instead.has_value() && instead->lowercase", "false",
     "lower case twice is lower case: it costs time only"),
    ("server/text/added_tokens.cc", "c < 0x80 ? 1 : c < 0x800 ? 2 : 3", "1",
     "inside a character, PreviousCharacter finds that character again: byte by byte the loop comes to its beginning"),
    ("server/text/token_strings.cc", "if (!entries_.empty() && entries_.back().id == id) continue;", "",
     "a search finds the first of the entries of one id, which is the one that stays; the others cost memory only"),
    ("server/text/models/short_merge.cc", "lefts | Bit(left)", "lefts",
     "a symbol that has a pair is in `lefts`: it leaves them only when it loses its pair, and gets no other then"),
]
