// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/encoder.pb.h"
#include "server/protocols/encoder/messages.h"
#include "server/requests/encode_types.h"

// The outputs of heads on tokens in the messages of attendant.v1.Encoder.
namespace attendant {

// Adds the tasks that `outputs` asks for.
void TasksFromProto(const v1::OutputSelection& outputs, EncodeInput& input);

// Fills the fields of tasks in a response whose `sequences` are there, and frees the results on the
// way.
void TasksToProto(EncodeOutput& output, const AnswerForm& form, v1::EncodeResponse& response);

}  // namespace attendant
