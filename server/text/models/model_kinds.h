// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/text/base/json_fields.h"
#include "server/text/models/token_model.h"

namespace attendant {

// Each reads a model of its type. Failures go to the file's status; then the model is not used.

ModelPart ReadBpe(const JsonFields& fields);
ModelPart ReadUnigram(const JsonFields& fields);
ModelPart ReadWordPiece(const JsonFields& fields);

}  // namespace attendant
