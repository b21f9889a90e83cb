// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/text/base/json_fields.h"
#include "server/text/normalizers/normalizer.h"

namespace attendant {

// Each reads a part of its type. Failures go to the file's status; then the part is not used.

std::unique_ptr<Normalizer> ReadBertNormalizer(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadLowercase(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadNfc(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadNfd(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadNfkc(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadNfkd(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadPrecompiled(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadPrepend(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadReplace(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadStrip(const JsonFields& fields);
std::unique_ptr<Normalizer> ReadStripAccents(const JsonFields& fields);

}  // namespace attendant
