// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"
#include "server/requests/read_sequence.h"

// The outputs of a model's heads on tokens, from an encode request to its answer.
namespace attendant {

// Gives each of the request's tasks to a head of the model, with the model's defaults filled in.
// INVALID_ARGUMENT for a kind that the model does not make, a kind that comes twice and a top_k
// below 0.
absl::Status ChooseTasks(const SequenceReading& reading, EncodeWork& work, EncodeOutput& output);

// True if the results of the task have ids of the vocabulary.
bool HasIds(TaskKind kind);

// The bytes of the results of `output`'s tasks for a sequence of these unmasked tokens, at most.
int64_t CountTaskBytes(const EncoderModel& model, const EncodeWork& work,
                       const EncodeOutput& output, std::span<const int32_t> token_ids);

// The time that heads take for the tasks of a sequence, as measured when the model was loaded.
int64_t CountHeadNs(const EncoderModel& model, const EncodeWork& work,
                    const SequenceInput& sequence);

// The bytes of each value of a task's result, with its index and its token's string where it has
// them.
int64_t TaskValueBytes(const AskedTask& task);

// Fills in the strings of the results, where they are asked for. REQUIRES: task_strings has an
// entry for each task.
void NameResults(const EncoderModel& model, const EncodeOutput& output, EncodedSequence& sequence);

// The place of a task's result; kNoTask when it was not asked for.
inline constexpr size_t kNoTask = static_cast<size_t>(-1);
size_t FindTask(const EncodeOutput& output, TaskKind kind);

}  // namespace attendant
