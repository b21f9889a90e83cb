// SPDX-License-Identifier: Apache-2.0
#include "server/access/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// A request compares its key with all: 1024 take 20 us.
constexpr size_t kMaxApiKeys = 1024;
constexpr size_t kMinKeyBytes = 16;
constexpr size_t kMaxKeyBytes = 256;
constexpr size_t kMaxKeyNameBytes = 64;
constexpr absl::string_view kHashPrefix = "sha256:";

absl::StatusOr<Sha256Digest> ParseHash(absl::string_view digits) {
  Sha256Digest digest;
  const std::string bytes =
      std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit) && digits.size() % 2 == 0
          ? absl::HexStringToBytes(digits)
          : "";
  if (bytes.size() != digest.size()) {
    return absl::InvalidArgumentError("sha256: must be followed by 64 hexadecimal digits");
  }
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

absl::StatusOr<Sha256Digest> ParseKey(absl::string_view key) {
  if (absl::ConsumePrefix(&key, kHashPrefix)) return ParseHash(key);
  if (key.size() < kMinKeyBytes || key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the key has ", key.size(), " bytes, it must have ", kMinKeyBytes, " to ", kMaxKeyBytes));
  }
  if (!std::all_of(key.begin(), key.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError("the key has a character that is not printable ASCII");
  }
  return Sha256(key);
}

absl::Status CheckName(absl::string_view name) {
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  if (name.size() <= kMaxKeyNameBytes && std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the second word is the key's name: at most ",
                                                 kMaxKeyNameBytes, " letters, digits and ._-"));
}

absl::StatusOr<uint32_t> ParseGroups(absl::string_view words) {
  uint32_t groups = 0;
  for (const absl::string_view word : absl::StrSplit(words, ',')) {
    uint32_t bit = 0;
    for (const MethodGroup group : {MethodGroup::kInfer, MethodGroup::kRead, MethodGroup::kAdmin}) {
      if (word == GroupName(group)) bit = 1u << static_cast<unsigned>(group);
    }
    if (bit == 0) {
      return absl::InvalidArgumentError(
          "the third word lists the groups: infer, read and admin, separated by commas");
    }
    groups |= bit;
  }
  return groups;
}

absl::StatusOr<ApiKeys::Key> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", words.size(), " words, not 3: key, name and groups"));
  }
  ApiKeys::Key key;
  ATTENDANT_ASSIGN_OR_RETURN(key.digest, ParseKey(words[0]));
  ATTENDANT_RETURN_IF_ERROR(CheckName(words[1]));
  key.name = std::string(words[1]);
  ATTENDANT_ASSIGN_OR_RETURN(key.groups, ParseGroups(words[2]));
  return key;
}

}  // namespace

absl::string_view GroupName(MethodGroup group) {
  constexpr absl::string_view kNames[] = {"open", "infer", "read", "admin"};
  return kNames[static_cast<size_t>(group)];
}

Sha256Digest Sha256(absl::string_view text) {
  Sha256Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

absl::StatusOr<ApiKeys> ApiKeys::Parse(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // the byte-order mark of some editors
  ApiKeys keys;
  int number = 0;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    absl::StatusOr<Key> key = ParseLine(line);
    if (key.ok() && keys.keys_.size() == kMaxApiKeys) {
      key = absl::InvalidArgumentError(absl::StrCat("there are more than ", kMaxApiKeys, " keys"));
    }
    const auto same = [&](const Key& other) { return key.ok() && other.digest == key->digest; };
    if (std::any_of(keys.keys_.begin(), keys.keys_.end(), same)) {
      key = absl::InvalidArgumentError("an earlier line has the same key");
    }
    if (!key.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", key.status().message()));
    }
    keys.keys_.push_back(*std::move(key));
  }
  if (keys.keys_.empty()) return absl::InvalidArgumentError("there is no key in it");
  return keys;
}

const ApiKeys::Key* ApiKeys::Find(absl::string_view key) const {
  return key.size() > kMaxKeyBytes ? nullptr : Find(Sha256(key));
}

const ApiKeys::Key* ApiKeys::Find(const Sha256Digest& digest) const {
  const Key* found = nullptr;
  for (const Key& entry : keys_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  return found;
}

}  // namespace attendant
