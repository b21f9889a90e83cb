// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/encoder.pb.h"
#include "server/protocols/encoder/messages.h"
#include "server/requests/encode_types.h"

namespace attendant {

// Fills the words in a response whose `sequences` are there.
void WordsToProto(const EncodeOutput& output, const AnswerForm& form, v1::EncodeResponse& response);

}  // namespace attendant
