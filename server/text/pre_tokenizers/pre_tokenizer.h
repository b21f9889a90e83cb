// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/text/base/growth.h"

namespace attendant {

// A part of a normalized text. It may be empty only as the whole of an empty text.
struct Piece {
  absl::string_view text;
  bool starts_input = false;  // begins with the first byte of the text that the caller sent
  // [text.size()], where each byte comes from, as AlignedText's; null: not asked for.
  const uint32_t* sources = nullptr;

  // The part of the piece from byte `begin` to byte `end`.
  Piece Part(size_t begin, size_t end) const {
    return {text.substr(begin, end - begin), starts_input && begin == 0,
            sources == nullptr ? nullptr : sources + begin};
  }
};

// A step of a tokenizer.json that cuts text into the pieces that a model turns into ids.
// Immutable, thread-safe.
class PreTokenizer {
 public:
  // Gets the pieces in order, none empty, with sources where the whole has them; each holds during
  // the call. False: no more are needed.
  using Visitor = absl::FunctionRef<bool(const Piece&)>;

  virtual ~PreTokenizer() = default;

  // Returns whether `visit` never returned false. Time is linear in the piece's bytes, memory in
  // those of the longest piece that comes of it. REQUIRES: valid UTF-8.
  virtual bool Split(const Piece& piece, Visitor visit) const = 0;

  // The growth of one piece.
  virtual Growth growth() const { return {}; }

  // True if a text may be cut before any space or line end, and its parts split one by one, with
  // the same result.
  virtual bool cuts_at_spaces() const { return false; }

  // True if the result depends on Piece::starts_input. For the library, each piece that comes of
  // the text's first character begins with it.
  virtual bool needs_start() const { return false; }

  // True if one character may become several pieces; `normalized`: behind a normalizer. Pieces of a
  // normalizer that keeps_start are no punctuation.
  virtual bool parts_characters(bool /*normalized*/) const { return false; }

  // True if a step that needs_start comes after a step that parts_characters.
  virtual bool loses_start(bool /*normalized*/) const { return false; }
};

// Reads the file's `pre_tokenizer`. Null, and a failure in the file's status, for one that is not
// supported or makes pieces too long. A file without a pre-tokenizer has none: null.
std::unique_ptr<PreTokenizer> ReadPreTokenizer(const JsonFields& file);

}  // namespace attendant
