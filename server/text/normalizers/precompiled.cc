// SPDX-License-Identifier: Apache-2.0
#include <bitset>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/text/normalizers/charsmap.h"
#include "server/text/normalizers/normalizer_kinds.h"
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

  void Append(absl::string_view text, std::string& out) const override {
    const char* position = text.data();
    const char* const end = position + text.size();
    while (position < end) {
      const char* const cluster_end = FindGraphemeEnd(position, end);
      const absl::string_view cluster(position, static_cast<size_t>(cluster_end - position));
      position = cluster_end;
      if (cluster.size() > kMaxClusterBytes || !AppendReplacement(cluster, out)) {
        AppendCharacters(cluster, out);
      }
    }
  }

 private:
  bool AppendReplacement(absl::string_view key, std::string& out) const {
    const auto first = static_cast<unsigned char>(key[0]);
    if (key.size() == 1 && stays_[first]) return out.push_back(key[0]), true;
    const std::optional<absl::string_view> replacement = map_.Find(key);
    if (replacement.has_value()) absl::StrAppend(&out, *replacement);
    return replacement.has_value();
  }

  void AppendCharacters(absl::string_view cluster, std::string& out) const {
    const char* const end = cluster.data() + cluster.size();
    for (const char* position = cluster.data(); position < end;) {
      const char* const begin = position;
      NextCharacter(position);
      const absl::string_view character(begin, static_cast<size_t>(position - begin));
      if (!AppendReplacement(character, out)) absl::StrAppend(&out, character);
    }
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
