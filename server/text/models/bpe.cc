// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/bpe.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/text/models/short_merge.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr int32_t kNoId = TokenTrie::kNoId;
constexpr char32_t kFirstOfThreeBytes = 0x800;

}  // namespace

// The symbols of a piece as a linked list, and the merges that may be next.
class Bpe::Symbols {
 public:
  // Doubling would take three times as much at times.
  Symbols(size_t piece_bytes, bool with_spans) : with_spans_(with_spans) {
    list_.reserve(piece_bytes);
    if (with_spans) bytes_.reserve(piece_bytes);
  }

  void Add(int32_t id, size_t bytes) {
    const auto at = static_cast<int32_t>(list_.size());
    if (at > 0) list_.back().next = at;
    list_.push_back({id, at - 1, kEnd});
    if (with_spans_) bytes_.push_back(static_cast<uint32_t>(bytes));
  }
  // An unknown token stands here, though tokens of bytes may still come before it.
  void AddUnknown(int32_t id, size_t bytes, bool fuse) {
    if (!fuse) AddPending();
    pending_bytes_ = (pending_unk_ == kNoId ? 0 : pending_bytes_) + bytes;
    pending_unk_ = id;
  }
  void AddPending() {
    if (pending_unk_ != kNoId) Add(std::exchange(pending_unk_, kNoId), pending_bytes_);
  }

  // Runs the merges in the order of (rank, place). As in the library, an outdated entry counts
  // where the pair that now stands there merges to the same token.
  void MergeAll(const MergeTable& merges) {
    for (size_t i = 0; i + 1 < list_.size(); ++i) Push(i, merges);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const uint64_t top = heap_.back();
      heap_.pop_back();
      MergeAt(static_cast<uint32_t>(top), merges.merged(static_cast<uint32_t>(top >> 32)).id,
              merges);
    }
  }

  void AppendTo(std::vector<int32_t>& ids) const {
    for (const Symbol& symbol : list_) {
      if (symbol.next != kMerged) ids.push_back(symbol.id);
    }
  }
  // REQUIRES: with_spans.
  void AppendTo(std::vector<ByteSpan>& spans) const {
    spans.reserve(spans.size() + list_.size());
    size_t end = 0;
    for (size_t i = 0; i < list_.size();) {
      const size_t begin = end;
      const size_t next = list_[i].next == kEnd ? list_.size() : static_cast<size_t>(list_[i].next);
      for (; i < next; ++i) end += bytes_[i];
      spans.push_back({begin, end});
    }
  }

 private:
  static constexpr int32_t kEnd = -1;
  static constexpr int32_t kMerged = -2;
  struct Symbol {
    int32_t id;
    int32_t previous;
    int32_t next;  // kEnd, or kMerged into one before it
  };

  bool Push(size_t at, const MergeTable& merges) {
    const Symbol& symbol = list_[at];
    const uint32_t rank = merges.Find(symbol.id, list_[static_cast<size_t>(symbol.next)].id);
    if (rank == MergeTable::kNone) return false;
    heap_.push_back(uint64_t{rank} << 32 | at);
    return true;
  }
  void PushToHeap(size_t at, const MergeTable& merges) {
    if (Push(at, merges)) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void MergeAt(size_t at, int32_t merged, const MergeTable& merges) {
    Symbol& left = list_[at];
    if (left.next < 0) return;
    Symbol& right = list_[static_cast<size_t>(left.next)];
    const uint32_t rank = merges.Find(left.id, right.id);
    if (rank == MergeTable::kNone || merges.merged(rank).id != merged) return;
    left.id = merged;
    left.next = right.next;
    right.next = kMerged;
    if (left.next >= 0) list_[static_cast<size_t>(left.next)].previous = static_cast<int32_t>(at);
    if (left.previous >= 0) PushToHeap(static_cast<size_t>(left.previous), merges);
    if (left.next >= 0) PushToHeap(at, merges);
  }

  std::vector<Symbol> list_;
  std::vector<uint64_t> heap_;  // rank << 32 | place of the left symbol
  bool with_spans_;
  std::vector<uint32_t> bytes_;  // of each symbol before merges, with_spans only
  int32_t pending_unk_ = kNoId;
  size_t pending_bytes_ = 0;
};

Bpe::Bpe(BpeConfig config) : config_(std::move(config)), merges_(config_.merges) {
  const std::vector<VocabularyEntry> vocabulary = std::exchange(config_.vocabulary, {});
  plain_ = config_.continuing_subword_prefix.empty() && config_.end_of_word_suffix.empty() &&
           merges_.size() <= kMaxShortMerges;
  for (const VocabularyEntry& entry : vocabulary) {
    trie_.Insert(entry.token, entry.id);
    plain_ = plain_ && !entry.token.empty();
  }
  config_.merges = {};
  two_bytes_.assign(kFirstOfThreeBytes, kNoId);
  for (char32_t c = 0; c < kFirstOfThreeBytes; ++c) {
    const char text[2] = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    const char ascii = static_cast<char>(c);
    two_bytes_[c] =
        trie_.FindId(c < 0x80 ? absl::string_view(&ascii, 1) : absl::string_view(text, 2));
  }
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = trie_.FindId(absl::StrFormat("<0x%02X>", byte));
  }
  if (config_.ignore_merges) {
    max_whole_bytes_ = std::numeric_limits<size_t>::max();
  } else {
    FindWholeTokens(vocabulary);
  }
}

void Bpe::FindWholeTokens(const std::vector<VocabularyEntry>& vocabulary) {
  std::vector<int32_t> ids;
  std::vector<ByteSpan> spans;
  for (const VocabularyEntry& entry : vocabulary) {
    ids.clear();
    spans.clear();
    AppendMerged(entry.token, ids, &spans);
    if (ids != std::vector<int32_t>{entry.id} || spans[0].end != entry.token.size()) continue;
    const auto id = static_cast<size_t>(entry.id);
    if (id >= kMaxWholeIds) continue;
    if (whole_.size() <= id) whole_.resize(id + 1);
    whole_[id] = true;
    max_whole_bytes_ = std::max(max_whole_bytes_, entry.token.size());
  }
}

void Bpe::Append(absl::string_view piece, std::vector<int32_t>& ids,
                 std::vector<ByteSpan>* spans) const {
  const int32_t id = piece.size() <= max_whole_bytes_ ? trie_.FindId(piece) : kNoId;
  if (id != kNoId && (config_.ignore_merges || IsWhole(id))) {
    if (spans != nullptr) spans->push_back({0, piece.size()});
    return ids.push_back(id);
  }
  AppendMerged(piece, ids, spans);
}

void Bpe::AppendMerged(absl::string_view piece, std::vector<int32_t>& ids,
                       std::vector<ByteSpan>* spans) const {
  if (plain_ && AppendShort(piece, ids, spans)) return;
  Symbols symbols(piece.size(), spans != nullptr);
  AddCharacters(piece, symbols);
  symbols.MergeAll(merges_);
  symbols.AppendTo(ids);
  if (spans != nullptr) symbols.AppendTo(*spans);
}

// False, and nothing changes, when the piece is too long or a character has no token.
bool Bpe::AppendShort(absl::string_view piece, std::vector<int32_t>& ids,
                      std::vector<ByteSpan>* spans) const {
  std::array<int32_t, kMaxShortSymbols> symbols;
  std::array<size_t, kMaxShortSymbols + 1> places;
  size_t count = 0;
  for (size_t at = 0; at < piece.size(); ++count) {
    if (count == kMaxShortSymbols) return false;
    const size_t bytes = CharacterBytes(piece[at]);
    symbols[count] = FindCharacter(piece.substr(at, bytes));
    if (symbols[count] == kNoId) return false;
    places[count] = at;
    at += bytes;
  }
  places[count] = piece.size();
  uint64_t begins = MergeShort(merges_, absl::MakeSpan(symbols.data(), count));
  while (begins != 0) {
    const auto place = static_cast<size_t>(__builtin_ctzll(begins));
    begins &= begins - 1;
    ids.push_back(symbols[place]);
    if (spans == nullptr) continue;
    const size_t next = begins == 0 ? count : static_cast<size_t>(__builtin_ctzll(begins));
    spans->push_back({places[place], places[next]});
  }
  return true;
}

void Bpe::AddCharacters(absl::string_view piece, Symbols& symbols) const {
  bool is_first = true;
  while (!piece.empty()) {
    const absl::string_view character = piece.substr(0, CharacterBytes(piece[0]));
    piece.remove_prefix(character.size());
    const int32_t id = FindCharacter(character, is_first, piece.empty());
    if (id != kNoId) {
      symbols.AddPending();
      symbols.Add(id, character.size());
    } else if (!config_.byte_fallback || !AddBytes(character, is_first, piece.empty(), symbols)) {
      if (config_.unk_id != kNoId) {
        symbols.AddUnknown(config_.unk_id, character.size(), config_.fuse_unk);
      }
    }
    is_first = false;
  }
  symbols.AddPending();
}

int32_t Bpe::FindCharacter(absl::string_view character, bool is_first, bool is_last) const {
  const absl::string_view prefix =
      is_first ? absl::string_view() : config_.continuing_subword_prefix;
  const absl::string_view suffix = is_last ? config_.end_of_word_suffix : absl::string_view();
  if (!prefix.empty() || !suffix.empty()) {
    return trie_.FindId(absl::StrCat(prefix, character, suffix));
  }
  return FindCharacter(character);
}

int32_t Bpe::FindCharacter(absl::string_view character) const {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return two_bytes_[byte(0)];
  if (character.size() == 2) return two_bytes_[(byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu)];
  return trie_.FindId(character);
}

// False, and nothing changes, when some byte has no token.
bool Bpe::AddBytes(absl::string_view character, bool is_first, bool is_last,
                   Symbols& symbols) const {
  const std::string whole = absl::StrCat(is_first ? "" : config_.continuing_subword_prefix,
                                         character, is_last ? config_.end_of_word_suffix : "");
  const auto id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  for (const char byte : whole) {
    if (id(byte) == kNoId) return false;
  }
  for (const char byte : whole) symbols.Add(id(byte), 1);
  return true;
}

}  // namespace attendant
