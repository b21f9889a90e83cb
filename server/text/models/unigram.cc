// SPDX-License-Identifier: Apache-2.0
#include "server/text/models/unigram.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/text/models/model_kinds.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

// The best way to each byte of a piece, from the byte `begin` on.
class Unigram::Path {
 public:
  struct Token {
    size_t begin = 0;
    size_t end = 0;
    int32_t id = 0;
  };

  using Tokens = absl::InlinedVector<Token, 16>;

  double score_at(size_t byte) const { return nodes_[byte - begin_].score; }

  void Add(size_t from, size_t to, double score, int32_t id) {
    if (nodes_.size() <= to - begin_) nodes_.resize(to - begin_ + 1);
    Node& node = nodes_[to - begin_];
    const double sum = score + score_at(from);
    if (node.id != TokenTrie::kNoId && !(sum > node.score)) return;
    node = {sum, static_cast<uint32_t>(to - from), id};
  }

  // The tokens of the best way to `end`, in order. The path goes on from there.
  void Take(size_t end, Tokens& tokens) {
    tokens.clear();
    for (size_t at = end; at > begin_;) {
      const Node& node = nodes_[at - begin_];
      tokens.push_back({at - node.bytes, at, node.id});
      at -= node.bytes;
    }
    std::reverse(tokens.begin(), tokens.end());
    const double score = score_at(end);
    nodes_.assign(1, Node{score, 0, TokenTrie::kNoId});
    begin_ = end;
  }

 private:
  struct Node {
    double score = 0;
    uint32_t bytes = 0;             // of its last token
    int32_t id = TokenTrie::kNoId;  // of its last token; kNoId where no token ends
  };

  absl::InlinedVector<Node, 64> nodes_ = absl::InlinedVector<Node, 64>(1);
  size_t begin_ = 0;
};

Unigram::Unigram(const UnigramConfig& config)
    : unk_id_(config.unk_id), byte_fallback_(config.byte_fallback) {
  double min_score = std::numeric_limits<double>::infinity();
  for (size_t id = config.vocabulary.size(); id-- > 0;) {
    trie_.Insert(config.vocabulary[id].token, static_cast<int32_t>(id));
  }
  for (const ScoredToken& token : config.vocabulary) {
    scores_.push_back(token.score);
    min_score = std::min(min_score, token.score);
  }
  unk_score_ = min_score - kUnknownPenalty;
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = trie_.FindId(absl::StrFormat("<0x%02X>", byte));
  }
}

void Unigram::Append(absl::string_view piece, std::vector<int32_t>& ids,
                     std::vector<ByteSpan>* spans) const {
  Path path;
  Path::Tokens tokens;
  size_t unknown_begin = 0;
  size_t unknown_end = 0;  // the run of unknown characters before the next token
  const auto append_unknown = [&] {
    if (unknown_begin == unknown_end) return;
    const size_t ids_before = ids.size();
    AppendUnknown(piece.substr(unknown_begin, unknown_end - unknown_begin), ids);
    // The token of a byte stands for the whole run too.
    if (spans != nullptr) {
      spans->insert(spans->end(), ids.size() - ids_before, {unknown_begin, unknown_end});
    }
    unknown_begin = unknown_end;
  };
  size_t reach = 0;
  for (size_t at = 0; at < piece.size();) {
    reach = std::max(reach, AddTokens(piece, at, path));
    at += CharacterBytes(piece[at]);
    if (at != reach) continue;  // some token reaches across
    path.Take(at, tokens);
    for (const Path::Token& token : tokens) {
      if (token.id == unk_id_) {
        if (unknown_begin == unknown_end) unknown_begin = token.begin;
        unknown_end = token.end;
      } else {
        append_unknown();
        ids.push_back(token.id);
        if (spans != nullptr) spans->push_back({token.begin, token.end});
      }
    }
  }
  append_unknown();
}

// Adds the tokens that begin at the character `at`; returns where the longest ends.
size_t Unigram::AddTokens(absl::string_view piece, size_t at, Path& path) const {
  const char* const begin = piece.data();
  const char* const end = begin + piece.size();
  const char* position = begin + at;
  TokenTrie::Place place = trie_.Step(TokenTrie::kRoot, NextCharacter(position));
  auto reach = static_cast<size_t>(position - begin);
  if (place.id == TokenTrie::kNoId) {
    path.Add(at, reach, unk_score_, unk_id_);
  } else {
    path.Add(at, reach, scores_[static_cast<size_t>(place.id)], place.id);
  }
  while (place.node != TokenTrie::kNoNode && position < end) {
    place = trie_.Step(place.node, NextCharacter(position));
    if (place.id == TokenTrie::kNoId) continue;
    reach = static_cast<size_t>(position - begin);
    path.Add(at, reach, scores_[static_cast<size_t>(place.id)], place.id);
  }
  return reach;
}

// A run may be a token as a whole that lost against its characters.
void Unigram::AppendUnknown(absl::string_view run, std::vector<int32_t>& ids) const {
  const int32_t whole = trie_.FindId(run);
  if (whole != TokenTrie::kNoId) return ids.push_back(whole);
  const auto byte_id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (!byte_fallback_ || std::any_of(run.begin(), run.end(), [&](char byte) {
        return byte_id(byte) == TokenTrie::kNoId;
      })) {
    return ids.push_back(unk_id_);
  }
  for (const char byte : run) ids.push_back(byte_id(byte));
}

// {"unk_id": 3, "vocab": [["<s>", 0.0], ["a", -3.5]]}
ModelPart ReadUnigram(const JsonFields& fields) {
  UnigramConfig config;
  size_t bytes = 0;
  for (const JsonArrayItem& item : fields.Items("vocab")) {
    if (!fields.ok()) break;
    const double score = item.Number(1);
    config.vocabulary.push_back({item.String(0), score});
    bytes += config.vocabulary.back().token.size();
  }
  CheckVocabularyBytes(fields, "model.vocab", bytes);
  if (config.vocabulary.empty()) fields.Fail("vocab", "is empty");
  if (!fields.ok()) return {};
  const auto last = static_cast<int64_t>(config.vocabulary.size()) - 1;
  config.unk_id = static_cast<int32_t>(fields.Integer("unk_id", last));
  config.byte_fallback = fields.Has("byte_fallback") && fields.Bool("byte_fallback");
  if (!fields.ok()) return {};
  ModelPart part{std::make_unique<Unigram>(config), {}};
  for (ScoredToken& token : config.vocabulary) {
    part.vocabulary.push_back(
        {std::move(token.token), static_cast<int32_t>(part.vocabulary.size())});
  }
  return part;
}

}  // namespace attendant
