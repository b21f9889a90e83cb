// SPDX-License-Identifier: Apache-2.0
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/aligned_text.h"
#include "server/text/normalizers/charsmap.h"
#include "server/text/normalizers/normalizer_kinds.h"
#include "server/text/unicode/form_edits.h"
#include "server/text/unicode/grapheme.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// Longer clusters are looked up character by character.
constexpr size_t kMaxClusterBytes = 5;

// Sentencepiece's table as the `tokenizers` library applies it: to whole grapheme clusters, of
// which the shortest key that begins them counts, else to their characters.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {
    for (size_t c = 1; c < 128; ++c) {
      const char character = static_cast<char>(c);
      stays_[c] = !map_.Find(absl::string_view(&character, 1)).has_value();
    }
    stays_[0] = true;
  }

  void Append(absl::string_view text, size_t max_bytes, std::string& out) const override {
    const auto more = [&] { return out.size() <= max_bytes; };
    Visit(text, more, [&out](absl::string_view /*part*/, absl::string_view replacement) {
      if (replacement.size() == 1) return out.push_back(replacement[0]);
      absl::StrAppend(&out, replacement);
    });
  }

  void Align(AlignedText& text) const override {
    std::vector<CharacterEdit> edits;
    const auto more = [&] { return edits.size() <= text.max_bytes(); };
    Visit(text.text(), more, [&edits](absl::string_view part, absl::string_view replacement) {
      AddEdits(part, replacement, edits);
    });
    text.Apply(edits);
  }
  Growth growth() const override { return {.times = map_.times()}; }

 private:
  // Hands out the parts of `text` in order, and what takes their place, while `more` says so.
  template <typename More, typename Visitor>
  void Visit(absl::string_view text, More more, Visitor visit) const {
    const char* position = text.data();
    const char* const end = position + text.size();
    while (position < end && more()) {
      const char* const cluster_end = FindGraphemeEnd(position, end);
      const absl::string_view cluster(position, static_cast<size_t>(cluster_end - position));
      position = cluster_end;
      if (cluster.size() > kMaxClusterBytes || !VisitReplaced(cluster, visit)) {
        VisitCharacters(cluster, more, visit);
      }
    }
  }

  // False, and no visit, when nothing replaces `key`.
  template <typename Visitor>
  bool VisitReplaced(absl::string_view key, Visitor& visit) const {
    const auto first = static_cast<unsigned char>(key[0]);
    if (key.size() == 1 && stays_[first]) return visit(key, key), true;
    const std::optional<absl::string_view> replacement = map_.Find(key);
    if (replacement.has_value()) visit(key, *replacement);
    return replacement.has_value();
  }

  template <typename More, typename Visitor>
  void VisitCharacters(absl::string_view cluster, More& more, Visitor& visit) const {
    const char* const end = cluster.data() + cluster.size();
    for (const char* position = cluster.data(); position < end && more();) {
      const char* const begin = position;
      NextCharacter(position);
      const absl::string_view character(begin, static_cast<size_t>(position - begin));
      if (!VisitReplaced(character, visit)) visit(character, character);
    }
  }

  // As in the library: the last character of all so far takes what is too few or too many. So
  // where a text begins with characters that vanish, those after them seem to come from there.
  static void AddEdits(absl::string_view part, absl::string_view replacement,
                       std::vector<CharacterEdit>& edits) {
    auto surplus = -static_cast<int32_t>(CountCharacters(part));
    for (const char* at = replacement.data(); at < replacement.data() + replacement.size();) {
      const char32_t character = NextCharacter(at);
      edits.push_back({character, surplus < 0 ? 0 : 1});
      ++surplus;
    }
    if (surplus < 0 && !edits.empty()) edits.back().change += surplus;
  }

  Charsmap map_;
  std::bitset<128> stays_;  // ASCII characters without a replacement
};

}  // namespace

std::unique_ptr<Normalizer> ReadPrecompiled(const JsonFields& fields) {
  std::string bytes;
  if (!absl::Base64Unescape(fields.String("precompiled_charsmap"), &bytes)) {
    fields.Fail("precompiled_charsmap", "is not base64");
  }
  if (!fields.ok()) return nullptr;
  absl::StatusOr<Charsmap> map = Charsmap::Parse(bytes);
  if (map.ok()) return std::make_unique<Precompiled>(*std::move(map));
  fields.Fail("precompiled_charsmap", map.status().message());
  return nullptr;
}

}  // namespace attendant
