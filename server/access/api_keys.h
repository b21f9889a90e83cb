// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Every method of every protocol belongs to one group. A key may call the groups that it has.
enum class MethodGroup {
  kOpen,   // anybody may call it: health
  kInfer,  // it computes: Encode, ModelInfer, Attend
  kRead,   // descriptions: models, metadata, statistics, reflection
  kAdmin,  // it changes the server: loads and unloads models
};
absl::string_view GroupName(MethodGroup group);  // "infer"

using Sha256Digest = std::array<unsigned char, 32>;
Sha256Digest Sha256(absl::string_view text);

// The keys of a key file, which has one a line: the key, its name, and its groups.
//
//   # key                             name      groups
//   2f0c9d5e8b7a4163d0f1e2c3b4a59687  search    infer,read
//   sha256:8d969eef6ecad3c29a3a62928  operator  infer,read,admin     (64 digits of the SHA-256)
//
// Blanks separate the three. Lines that are empty or start with # are comments. A key has 16 to 256
// printable ASCII characters. A name has up to 64 letters, digits and ._-; it may have several
// keys. Immutable.
class ApiKeys {
 public:
  struct Key {
    Sha256Digest digest;
    std::string name;
    uint32_t groups = 0;  // a bit for each MethodGroup

    bool may_call(MethodGroup group) const {
      return (groups >> static_cast<unsigned>(group) & 1u) != 0;
    }
  };

  // INVALID_ARGUMENT names the line. The error never repeats a key.
  static absl::StatusOr<ApiKeys> Parse(absl::string_view text);

  // The entry of a key that a client sent; null when there is none. Compares with every entry, in
  // constant time each.
  const Key* Find(absl::string_view key) const;
  // The entry of the key with this digest; null when there is none.
  const Key* Find(const Sha256Digest& digest) const;

  size_t size() const { return keys_.size(); }

 private:
  std::vector<Key> keys_;  // at least one
};

}  // namespace attendant
