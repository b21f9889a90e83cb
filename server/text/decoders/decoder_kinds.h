// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/text/base/json_fields.h"
#include "server/text/decoders/decoder.h"

namespace attendant {

// Each reads a part of its type. Failures go to the file's status; then the part is not used.

std::unique_ptr<Decoder> ReadBpeDecoder(const JsonFields& fields);
std::unique_ptr<Decoder> ReadByteFallbackDecoder(const JsonFields& fields);
std::unique_ptr<Decoder> ReadByteLevelDecoder(const JsonFields& fields);
std::unique_ptr<Decoder> ReadFuseDecoder(const JsonFields& fields);
std::unique_ptr<Decoder> ReadMetaspaceDecoder(const JsonFields& fields);
std::unique_ptr<Decoder> ReadReplaceDecoder(const JsonFields& fields);
std::unique_ptr<Decoder> ReadStripDecoder(const JsonFields& fields);
std::unique_ptr<Decoder> ReadWordPieceDecoder(const JsonFields& fields);

}  // namespace attendant
