// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/text/tokenizer.h"
#include "tests/support/checkpoint.h"

// The files of tests/golden/tokenizer/families; make_families.py there says what they hold.
namespace attendant {

inline nlohmann::json ReadFamilyFile(const std::string& name) {
  std::ifstream file("tests/golden/tokenizer/families/" + name);
  return nlohmann::json::parse(file);
}

// The tokenizer of a tokenizer.json with these contents; null, and a failure, where it is refused.
inline std::unique_ptr<Tokenizer> LoadFromContents(const std::string& contents) {
  const TempDirectory directory;
  WriteFile(directory / "tokenizer.json", contents);
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(directory.path());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

class Crc32 {
 public:
  Crc32() {
    for (uint32_t i = 0; i < table_.size(); ++i) {
      table_[i] = i;
      for (int bit = 0; bit < 8; ++bit) {
        table_[i] = table_[i] >> 1 ^ (table_[i] & 1) * 0xEDB88320u;
      }
    }
  }
  void Add(const std::string& bytes) {
    for (const char byte : bytes) {
      value_ = table_[(value_ ^ static_cast<unsigned char>(byte)) & 0xFF] ^ value_ >> 8;
    }
  }
  uint32_t value() const { return ~value_; }

 private:
  std::array<uint32_t, 256> table_{};
  uint32_t value_ = ~0u;
};

// As make_corpus.py's offsets_checksum.
inline uint32_t OffsetsChecksum(const TokenizedText& text) {
  Crc32 crc;
  crc.Add(absl::StrJoin(text.offsets, " ", [](std::string* out, const TokenOffset& offset) {
    absl::StrAppend(out, offset.begin, " ", offset.end);
  }));
  return crc.value();
}

}  // namespace attendant
