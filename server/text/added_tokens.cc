// SPDX-License-Identifier: Apache-2.0
#include "server/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/readable.h"
#include "server/text/unicode/utf8.h"

namespace attendant {

absl::Status AddedTokens::Add(AddedToken token) {
  if (token.content.empty()) return absl::InvalidArgumentError("an added token is empty");
  if (!trie_.Insert(token.content, static_cast<int32_t>(tokens_.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("added token ", ReadableName(token.content), " is there twice"));
  }
  first_bytes_.set(static_cast<unsigned char>(token.content[0]));
  tokens_.push_back(std::move(token));
  return absl::OkStatus();
}

// A token that is part of a word is passed over whole, so that no shorter one inside it is found.
// The one before may have swallowed a token of whitespace: as in the library, one that strips on
// its left has only what is left of it, and is none where nothing is.
bool AddedTokens::Split(absl::string_view text, absl::FunctionRef<bool(const Part&)> visit) const {
  size_t done = 0;     // bytes handed out
  size_t from = 0;     // where to look for the next token
  size_t run_end = 0;  // of the whitespace that a token swallowed after it
  while (true) {
    const Place place = Find(text, from);
    if (place.token == nullptr) break;
    from = place.end;
    if (place.token->is_text || (place.token->single_word && IsPartOfWord(text, place))) continue;

    const Place wide = Widen(text, done, run_end, place);
    if (place.token->rstrip) run_end = wide.end;
    if (wide.begin >= wide.end) continue;
    if (done < wide.begin && !visit({.text = text.substr(done, wide.begin - done)})) return false;
    const absl::string_view token = text.substr(wide.begin, wide.end - wide.begin);
    if (!visit({.id = wide.token->id, .text = token})) return false;
    done = wide.end;
  }
  return done >= text.size() || visit({.text = text.substr(done)});
}

AddedTokens::Place AddedTokens::Find(absl::string_view text, size_t from) const {
  for (size_t i = from; i < text.size(); ++i) {
    if (!first_bytes_[static_cast<unsigned char>(text[i])]) continue;
    const TokenTrie::Match match = trie_.FindLongest(TokenTrie::kRoot, text.substr(i));
    if (match.id == TokenTrie::kNoId) continue;
    return {&tokens_[static_cast<size_t>(match.id)], i, i + match.bytes};
  }
  return {};
}

bool AddedTokens::IsPartOfWord(absl::string_view text, const Place& place) {
  const char* after = text.data() + place.end;
  return (place.begin > 0 && IsWordCharacter(PreviousCharacter(text.data() + place.begin))) ||
         (place.end < text.size() && IsWordCharacter(NextCharacter(after)));
}

// `place` with the whitespace that its token swallows. One that strips on its left has nothing
// before `from`: it may be empty, or end there. What is before `run_end` after a token is
// whitespace, and not read again: where a token is a space, every space would read all behind it.
AddedTokens::Place AddedTokens::Widen(absl::string_view text, size_t from, size_t run_end,
                                      Place place) {
  const auto utf8_bytes = [](char32_t c) -> size_t { return c < 0x80 ? 1 : c < 0x800 ? 2 : 3; };
  while (place.token->lstrip && place.begin > from) {
    const char32_t before = PreviousCharacter(text.data() + place.begin);
    if (!IsWhitespace(before)) break;
    place.begin -= utf8_bytes(before);
  }
  if (place.token->lstrip) place.begin = std::max(place.begin, from);
  if (place.token->rstrip) place.end = std::max(place.end, run_end);
  while (place.token->rstrip && place.end < text.size()) {
    const char* after = text.data() + place.end;
    if (!IsWhitespace(NextCharacter(after))) break;
    place.end = static_cast<size_t>(after - text.data());
  }
  return place;
}

}  // namespace attendant
