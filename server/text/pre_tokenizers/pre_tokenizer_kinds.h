// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/text/base/json_fields.h"
#include "server/text/pre_tokenizers/pre_tokenizer.h"

namespace attendant {

// Each reads a part of its type. Failures go to the file's status; then the part is not used.

std::unique_ptr<PreTokenizer> ReadBertPreTokenizer(const JsonFields& fields);
std::unique_ptr<PreTokenizer> ReadByteLevel(const JsonFields& fields);
std::unique_ptr<PreTokenizer> ReadDigits(const JsonFields& fields);
std::unique_ptr<PreTokenizer> ReadMetaspace(const JsonFields& fields);
std::unique_ptr<PreTokenizer> ReadPunctuation(const JsonFields& fields);
std::unique_ptr<PreTokenizer> ReadSplit(const JsonFields& fields);
std::unique_ptr<PreTokenizer> ReadWhitespaceSplit(const JsonFields& fields);

}  // namespace attendant
