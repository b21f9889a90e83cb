// SPDX-License-Identifier: Apache-2.0
// The decoders of a few lines: BPEDecoder, Fuse, Metaspace, Replace, Strip, WordPiece.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/text/base/pattern_field.h"
#include "server/text/decoders/decoder_kinds.h"
#include "server/text/unicode/pattern.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr int64_t kMaxStripped = 1 << 20;

// One character as UTF-8.
std::string ReadCharacter(const JsonFields& fields, absl::string_view key) {
  std::string character = fields.String(key);
  if (fields.ok() && (character.empty() || CharacterBytes(character[0]) != character.size())) {
    fields.Fail(key, "is not one character");
  }
  return character;
}

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void Decode(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      absl::StrReplaceAll({{suffix_, i + 1 < tokens.size() ? " " : ""}}, &tokens[i]);
    }
  }

 private:
  std::string suffix_;
};

class FuseDecoder final : public Decoder {
 public:
  void Decode(std::vector<std::string>& tokens) const override {
    tokens.assign(1, absl::StrJoin(tokens, ""));
  }
};

// A space for each replacement; none for those of the first token, if one was put there.
class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool prepended)
      : replacement_(std::move(replacement)), prepended_(prepended) {}

  void Decode(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      absl::StrReplaceAll({{replacement_, i == 0 && prepended_ ? "" : " "}}, &tokens[i]);
    }
  }

 private:
  std::string replacement_;
  bool prepended_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string replaced;
      pattern_.AppendReplaced(token, content_, replaced.max_size(), replaced);
      token = std::move(replaced);
    }
  }
  Growth growth() const override { return {.times = pattern_.ReplacedTimes(content_)}; }

 private:
  Pattern pattern_;
  std::string content_;
};

// Takes at most `start` and `stop` of one character from each token's ends.
class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void Decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      absl::string_view text = token;
      for (int64_t i = 0; i < start_ && absl::ConsumePrefix(&text, content_); ++i) continue;
      for (int64_t i = 0; i < stop_ && absl::ConsumeSuffix(&text, content_); ++i) continue;
      token = std::string(text);
    }
  }

 private:
  std::string content_;
  int64_t start_, stop_;
};

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  void Decode(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        token = absl::StartsWith(token, prefix_) ? token.substr(prefix_.size())
                                                 : absl::StrCat(" ", token);
      }
      if (cleanup_) CleanUp(token);
    }
  }
  Growth growth() const override { return {.times = 2}; }

 private:
  // One after the other, as transformers' clean_up_tokenization has them.
  static void CleanUp(std::string& token) {
    static constexpr std::pair<absl::string_view, absl::string_view> kReplacements[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& replacement : kReplacements) absl::StrReplaceAll({replacement}, &token);
  }

  std::string prefix_;
  bool cleanup_;
};

}  // namespace

std::unique_ptr<Decoder> ReadBpeDecoder(const JsonFields& fields) {
  std::string suffix = fields.String("suffix");
  if (fields.ok() && suffix.empty()) fields.Fail("suffix", "is empty");
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

std::unique_ptr<Decoder> ReadFuseDecoder(const JsonFields&) {
  return std::make_unique<FuseDecoder>();
}

std::unique_ptr<Decoder> ReadMetaspaceDecoder(const JsonFields& fields) {
  std::string replacement = ReadCharacter(fields, "replacement");
  const bool prepended = fields.Has("prepend_scheme")
                             ? fields.String("prepend_scheme") != "never"
                             : !fields.Has("add_prefix_space") || fields.Bool("add_prefix_space");
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), prepended);
}

std::unique_ptr<Decoder> ReadReplaceDecoder(const JsonFields& fields) {
  std::optional<Pattern> pattern = ReadPattern(fields);
  std::string content = ReadContent(fields, "content");
  if (!fields.ok()) return nullptr;
  return std::make_unique<ReplaceDecoder>(*std::move(pattern), std::move(content));
}

std::unique_ptr<Decoder> ReadStripDecoder(const JsonFields& fields) {
  std::string content = ReadCharacter(fields, "content");
  const int64_t start = fields.Integer("start", kMaxStripped);
  return std::make_unique<StripDecoder>(std::move(content), start,
                                        fields.Integer("stop", kMaxStripped));
}

std::unique_ptr<Decoder> ReadWordPieceDecoder(const JsonFields& fields) {
  std::string prefix = fields.String("prefix");
  return std::make_unique<WordPieceDecoder>(std::move(prefix), fields.Bool("cleanup"));
}

}  // namespace attendant
