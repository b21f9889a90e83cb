// SPDX-License-Identifier: Apache-2.0
// The decoders of tokens that stand for bytes: ByteLevel, ByteFallback.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "server/text/base/byte_characters.h"
#include "server/text/decoders/decoder_kinds.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// Each character a byte. A token with another character stays as it is.
class ByteLevelDecoder final : public Decoder {
 public:
  void Decode(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      const size_t before = bytes.size();
      if (AppendBytes(token, bytes)) continue;
      bytes.resize(before);
      bytes += token;
    }
    std::string text;
    AppendWellFormed(bytes, text);
    tokens.assign(1, std::move(text));
  }
  // A character of two bytes may stand for a byte that is no text: U+FFFD.
  Growth growth() const override { return {.times = 1.5}; }

 private:
  static bool AppendBytes(absl::string_view token, std::string& bytes) {
    for (const char* position = token.data(); position < token.data() + token.size();) {
      const std::optional<char> byte = ByteOfCharacter(NextCharacter(position));
      if (!byte.has_value()) return false;
      bytes.push_back(*byte);
    }
    return true;
  }
};

// "<0xE4>" a byte. A run of them that is no text becomes a U+FFFD for each.
class ByteFallbackDecoder final : public Decoder {
 public:
  void Decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (FindInvalidUtf8(bytes).has_value()) {
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      } else {
        out.push_back(bytes);
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const std::optional<char> byte = ByteOf(token)) {
        bytes.push_back(*byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }

 private:
  static std::optional<char> ByteOf(absl::string_view token) {
    int value = 0;
    if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>' ||
        !absl::SimpleHexAtoi(token.substr(3, 2), &value)) {
      return std::nullopt;
    }
    return static_cast<char>(value);
  }
};

}  // namespace

std::unique_ptr<Decoder> ReadByteLevelDecoder(const JsonFields&) {
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<Decoder> ReadByteFallbackDecoder(const JsonFields&) {
  return std::make_unique<ByteFallbackDecoder>();
}

}  // namespace attendant
