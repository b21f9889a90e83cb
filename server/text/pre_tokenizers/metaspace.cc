// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "server/text/pre_tokenizers/pre_tokenizer_kinds.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

enum class Prepend { kAlways, kFirst, kNever };

// Sentencepiece's: spaces become a visible character that begins each word.
class Metaspace final : public PreTokenizer {
 public:
  Metaspace(std::string replacement, Prepend prepend, bool split)
      : replacement_(std::move(replacement)), prepend_(prepend), split_(split) {}

  bool Split(const Piece& piece, Visitor visit) const override {
    std::string text = absl::StrReplaceAll(piece.text, {{" ", replacement_}});
    const bool prepends =
        (prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && piece.starts_input)) &&
        !text.empty() && !absl::StartsWith(text, replacement_);
    if (prepends) text.insert(0, replacement_);
    Piece whole = piece;
    whole.text = text;
    std::vector<uint32_t> sources;
    if (piece.sources != nullptr) {
      AppendSources(piece, prepends, sources);
      whole.sources = sources.data();
    }
    if (!split_) return text.empty() || visit(whole);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(replacement_, begin + 1), text.size());
      if (!visit(whole.Part(begin, end))) return false;
      begin = end;
    }
    return true;
  }
  bool needs_start() const override { return prepend_ == Prepend::kFirst; }
  bool parts_characters(bool /*normalized*/) const override { return prepend_ != Prepend::kNever; }
  Growth growth() const override {
    const auto bytes = static_cast<double>(replacement_.size());
    return {.times = prepend_ == Prepend::kNever ? bytes : 2 * bytes};
  }

 private:
  // The prepended replacement gets the source of the first character.
  void AppendSources(const Piece& piece, bool prepends, std::vector<uint32_t>& sources) const {
    if (prepends) sources.assign(replacement_.size(), piece.sources[0]);
    for (size_t i = 0; i < piece.text.size(); ++i) {
      const size_t bytes = piece.text[i] == ' ' ? replacement_.size() : 1;
      sources.insert(sources.end(), bytes, piece.sources[i]);
    }
  }

  std::string replacement_;  // one character
  Prepend prepend_;
  bool split_;
};

// Older files say add_prefix_space.
Prepend ReadScheme(const JsonFields& fields) {
  const bool never = fields.Has("add_prefix_space") && !fields.Bool("add_prefix_space");
  const std::string scheme = fields.Has("prepend_scheme") ? fields.String("prepend_scheme")
                             : never                      ? "never"
                                                          : "always";
  if (never && scheme != "never") fields.Fail("prepend_scheme", "contradicts add_prefix_space");
  if (scheme == "always") return Prepend::kAlways;
  if (scheme == "first") return Prepend::kFirst;
  if (scheme != "never") fields.Fail("prepend_scheme", "is not always, first or never");
  return Prepend::kNever;
}

}  // namespace

std::unique_ptr<PreTokenizer> ReadMetaspace(const JsonFields& fields) {
  std::string replacement = fields.String("replacement");
  const char* end = replacement.data();
  if (!replacement.empty()) NextCharacter(end);
  if (replacement.empty() || end != replacement.data() + replacement.size()) {
    fields.Fail("replacement", "is not one character");
  }
  const Prepend prepend = ReadScheme(fields);
  const bool split = !fields.Has("split") || fields.Bool("split");
  return std::make_unique<Metaspace>(std::move(replacement), prepend, split);
}

}  // namespace attendant
