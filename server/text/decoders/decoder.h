// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/text/base/growth.h"

namespace attendant {

// A step of a tokenizer.json on the way from tokens back to text. Immutable, thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // Changes the tokens in place; their number may fall. After the last step they are joined. Takes
  // time and memory linear in their bytes.
  virtual void Decode(std::vector<std::string>& tokens) const = 0;

  // The growth for all tokens together.
  virtual Growth growth() const { return {}; }
};

// Reads the file's `decoder`. Null, and a failure in the file's status, for one that is not
// supported or makes texts too long. A file without one has none: null; then spaces join the
// tokens.
std::unique_ptr<Decoder> ReadDecoder(const JsonFields& file);

}  // namespace attendant
