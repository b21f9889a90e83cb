// SPDX-License-Identifier: Apache-2.0
#include "server/text/decoders/decoder.h"

#include <utility>

#include "server/text/base/json_fields.h"
#include "server/text/base/part_table.h"
#include "server/text/decoders/decoder_kinds.h"

namespace attendant {
namespace {

using DecoderPtr = std::unique_ptr<Decoder>;

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<DecoderPtr> steps) : steps_(std::move(steps)) {}

  void Decode(std::vector<std::string>& tokens) const override {
    for (const DecoderPtr& step : steps_) step->Decode(tokens);
  }
  Growth growth() const override { return GrowthOf(steps_); }

 private:
  std::vector<DecoderPtr> steps_;
};

DecoderPtr ReadAnyDecoder(const JsonFields& fields);

DecoderPtr ReadSequenceDecoder(const JsonFields& fields) {
  return std::make_unique<SequenceDecoder>(
      ReadPartSequence<DecoderPtr>(fields, "decoders", ReadAnyDecoder));
}

constexpr PartKind<DecoderPtr> kDecoderKinds[] = {
    {"BPEDecoder", ReadBpeDecoder},      {"ByteFallback", ReadByteFallbackDecoder},
    {"ByteLevel", ReadByteLevelDecoder}, {"Fuse", ReadFuseDecoder},
    {"Metaspace", ReadMetaspaceDecoder}, {"Replace", ReadReplaceDecoder},
    {"Sequence", ReadSequenceDecoder},   {"Strip", ReadStripDecoder},
    {"WordPiece", ReadWordPieceDecoder},
};

DecoderPtr ReadAnyDecoder(const JsonFields& fields) {
  return ReadPart<DecoderPtr>(fields, "decoder type", fields.String("type"), kDecoderKinds);
}

}  // namespace

std::unique_ptr<Decoder> ReadDecoder(const JsonFields& file) {
  if (!file.Has("decoder")) return nullptr;
  DecoderPtr decoder = ReadAnyDecoder(file.Object("decoder"));
  if (decoder != nullptr) CheckGrowth(file, "decoder", decoder->growth(), kMaxDecodedTimes);
  return decoder;
}

}  // namespace attendant
