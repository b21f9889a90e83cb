// SPDX-License-Identifier: Apache-2.0
#include "server/requests/tasks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

// The memory of a token's string: those of a vocabulary are short.
constexpr int64_t kTokenStringBytes = 64;
constexpr int64_t kTokenBytes = sizeof(int32_t);  // of a row: its place in the sequence

absl::Status NoHead(const EncoderModel& model, TaskKind kind) {
  std::string why;
  for (const auto& [left_out, reason] : model.heads.left_out) {
    if (left_out == kind) absl::StrAppend(&why, ": ", reason);
  }
  return absl::InvalidArgumentError(absl::StrCat(TaskName(kind), ": model '", model.name,
                                                 "' has no head that makes this output", why));
}

// With what the model and the request's prompt say.
TaskOptions WithDefaults(const SequenceReading& reading, TaskOptions options) {
  const Prompt* prompt = reading.prompt;
  options.document = prompt != nullptr && prompt->form.has_value() && prompt->form->document;
  if (options.kind == TaskKind::kSparse && options.top_k == 0) {
    options.top_k = reading.model.sentence.max_active_dims;
  }
  return options;
}

}  // namespace

bool HasIds(TaskKind kind) { return kind == TaskKind::kSparse || kind == TaskKind::kFillMask; }

absl::Status ChooseTasks(const SequenceReading& reading, EncodeWork& work, EncodeOutput& output) {
  const EncoderModel& model = reading.model;
  for (const TaskOptions& asked : reading.input.tasks) {
    const TaskOptions options = WithDefaults(reading, asked);
    const std::optional<size_t> head = model.heads.Find(options.kind);
    if (!head.has_value()) return NoHead(model, options.kind);
    if (options.top_k < 0) {
      return absl::InvalidArgumentError(absl::StrCat(TaskName(options.kind), ".top_k is ",
                                                     options.top_k, ", it must be at least 0"));
    }
    if (FindTask(output, options.kind) != kNoTask) {
      return absl::InvalidArgumentError(
          absl::StrCat(TaskName(options.kind), " is asked for twice"));
    }
    work.tasks.push_back({.head = *head, .options = options});
    output.tasks.push_back({.kind = options.kind,
                            .columns = model.heads.heads[*head]->MaxResult(options, {}).columns,
                            .strings = reading.input.token_strings && HasIds(options.kind)});
  }
  return absl::OkStatus();
}

int64_t CountTaskBytes(const EncoderModel& model, const EncodeWork& work,
                       const EncodeOutput& output, std::span<const int32_t> token_ids) {
  int64_t bytes = 0;
  for (size_t i = 0; i < output.tasks.size(); ++i) {
    const HeadTask& task = work.tasks[i];
    const Head::ResultSize size = model.heads.heads[task.head]->MaxResult(task.options, token_ids);
    bytes += size.values * TaskValueBytes(output.tasks[i]);
    if (size.columns > 0) bytes += size.values / size.columns * kTokenBytes;
  }
  return bytes;
}

int64_t CountHeadNs(const EncoderModel& model, const EncodeWork& work,
                    const SequenceInput& sequence) {
  int64_t nanoseconds = 0;
  for (size_t i = 0; i < work.tasks.size(); ++i) {
    if (sequence.only_task >= 0 && static_cast<size_t>(sequence.only_task) != i) continue;
    const HeadTask& task = work.tasks[i];
    int64_t rows = sequence.len();
    if (task.options.kind == TaskKind::kFillMask) {
      const Head::ResultSize size =
          model.heads.heads[task.head]->MaxResult(task.options, sequence.token_ids);
      rows = size.values / std::max<int64_t>(size.columns, 1);
    }
    nanoseconds += rows * model.heads.row_ns[task.head];
  }
  return nanoseconds;
}

int64_t TaskValueBytes(const AskedTask& task) {
  int64_t bytes = sizeof(float);
  if (HasIds(task.kind)) bytes += sizeof(int32_t);
  if (task.strings) bytes += kTokenStringBytes;
  return bytes;
}

void NameResults(const EncoderModel& model, const EncodeOutput& output, EncodedSequence& sequence) {
  if (model.tokenizer == nullptr) return;
  for (size_t i = 0; i < output.tasks.size() && i < sequence.result.tasks.size(); ++i) {
    if (!output.tasks[i].strings) continue;
    std::vector<std::string>& strings = sequence.task_strings[i];
    for (const int32_t id : sequence.result.tasks[i].indices) {
      strings.emplace_back(model.tokenizer->TokenString(id));
    }
  }
}

size_t FindTask(const EncodeOutput& output, TaskKind kind) {
  for (size_t i = 0; i < output.tasks.size(); ++i) {
    if (output.tasks[i].kind == kind) return i;
  }
  return kNoTask;
}

}  // namespace attendant
