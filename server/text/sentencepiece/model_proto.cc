// SPDX-License-Identifier: Apache-2.0
#include "server/text/sentencepiece/model_proto.h"

#include <google/protobuf/io/coded_stream.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

// The wire types of protobuf.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A field of a message, as the wire has it.
struct WireField {
  uint32_t number = 0;
  uint32_t type = kVarint;
  uint64_t value = 0;       // but of kBytes
  absl::string_view bytes;  // of kBytes

  bool Is(uint32_t wanted_number, uint32_t wanted_type) const {
    return number == wanted_number && type == wanted_type;
  }
};

// The fields of a message in their order.
class WireFields {
 public:
  explicit WireFields(absl::string_view message)
      : message_(message),
        input_(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size())) {
  }

  // False at the end, and where the bytes are no message.
  bool Next(WireField& field) {
    if (at() == message_.size() || !ok_) return false;
    const uint32_t tag = input_.ReadTag();
    field.number = tag >> 3;
    field.type = tag & 7;
    ok_ = field.number != 0 && ReadValue(field);
    return ok_;
  }
  bool ok() const { return ok_; }

 private:
  size_t at() const { return static_cast<size_t>(input_.CurrentPosition()); }

  bool ReadValue(WireField& field) {
    uint32_t narrow = 0;
    switch (field.type) {
      case kVarint:
        return input_.ReadVarint64(&field.value);
      case kFixed64:
        return input_.ReadLittleEndian64(&field.value);
      case kFixed32:
        if (!input_.ReadLittleEndian32(&narrow)) return false;
        field.value = narrow;
        return true;
      case kBytes:
        if (!input_.ReadVarint64(&field.value) || field.value > message_.size() - at())
          return false;
        field.bytes = message_.substr(at(), static_cast<size_t>(field.value));
        return input_.Skip(static_cast<int>(field.value));
      default:
        return false;
    }
  }

  const absl::string_view message_;
  google::protobuf::io::CodedInputStream input_;
  bool ok_ = true;
};

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("is no sentencepiece model: ", what, " is cut off or not valid"));
}

absl::StatusOr<SentencePieceModel::Piece> ReadPiece(absl::string_view bytes, size_t index) {
  SentencePieceModel::Piece piece;
  WireFields fields(bytes);
  for (WireField field; fields.Next(field);) {
    if (field.Is(1, kBytes)) piece.text = std::string(field.bytes);
    if (field.Is(2, kFixed32))
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (!field.Is(3, kVarint)) continue;
    if (field.value < 1 || field.value > 6) {
      return absl::InvalidArgumentError(
          absl::StrCat("piece ", index, " has the type ", field.value, ", it must be from 1 to 6"));
    }
    piece.type = static_cast<SentencePieceModel::PieceType>(field.value);
  }
  if (!fields.ok() || piece.text.empty() || FindInvalidUtf8(piece.text).has_value() ||
      !std::isfinite(piece.score)) {
    return Malformed(absl::StrCat("piece ", index));
  }
  return piece;
}

absl::Status ReadTrainer(absl::string_view bytes, SentencePieceModel& model) {
  WireFields fields(bytes);
  for (WireField field; fields.Next(field);) {
    if (field.Is(3, kVarint)) model.model_type = field.value;
    if (field.Is(24, kVarint)) model.treat_whitespace_as_suffix = field.value != 0;
    if (field.Is(35, kVarint)) model.byte_fallback = field.value != 0;
  }
  return fields.ok() ? absl::OkStatus() : Malformed("trainer_spec");
}

absl::Status ReadNormalizerSpec(absl::string_view bytes, SentencePieceModel& model) {
  WireFields fields(bytes);
  for (WireField field; fields.Next(field);) {
    if (field.Is(2, kBytes)) model.precompiled_charsmap = std::string(field.bytes);
    if (field.Is(3, kVarint)) model.add_dummy_prefix = field.value != 0;
    if (field.Is(5, kVarint)) model.escape_whitespaces = field.value != 0;
  }
  return fields.ok() ? absl::OkStatus() : Malformed("normalizer_spec");
}

absl::Status ReadModelField(const WireField& field, SentencePieceModel& model) {
  if (field.Is(2, kBytes)) return ReadTrainer(field.bytes, model);
  if (field.Is(3, kBytes)) return ReadNormalizerSpec(field.bytes, model);
  if (!field.Is(1, kBytes)) return absl::OkStatus();
  if (model.pieces.size() == kMaxSentencePieces) {
    return absl::InvalidArgumentError(
        absl::StrCat("has more than ", kMaxSentencePieces, " pieces, the limit"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(SentencePieceModel::Piece piece,
                             ReadPiece(field.bytes, model.pieces.size()));
  model.pieces.push_back(std::move(piece));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SentencePieceModel> ParseSentencePiece(absl::string_view bytes) {
  constexpr size_t kMaxBytes = std::numeric_limits<int>::max();
  if (bytes.size() > kMaxBytes) return Malformed("a file of over 2 GiB");
  SentencePieceModel model;
  WireFields fields(bytes);
  for (WireField field; fields.Next(field);) {
    ATTENDANT_RETURN_IF_ERROR(ReadModelField(field, model));
  }
  if (!fields.ok()) return Malformed("the file");
  if (model.pieces.empty()) return Malformed("its list of pieces");
  return model;
}

}  // namespace attendant
