// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/encoder/tasks.h"

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/protocols/wire/messages.h"
#include "server/requests/tasks.h"

namespace attendant {
namespace {

int64_t CountValues(const EncodeOutput& output, size_t task) {
  size_t count = 0;
  for (const EncodedSequence& sequence : output.sequences) {
    count += sequence.result.tasks[task].values.size();
  }
  return static_cast<int64_t>(count);
}

// The values of a task, sequence after sequence, and its ids and strings.
template <typename Ids, typename Strings>
void AppendResults(const EncodeOutput& output, size_t task, NumberFormat format, std::string& bytes,
                   Ids& ids, Strings& strings) {
  for (const EncodedSequence& sequence : output.sequences) {
    const HeadResult& result = sequence.result.tasks[task];
    AppendValues(result.values, format, bytes);
    ids.Add(result.indices.begin(), result.indices.end());
    for (const std::string& string : sequence.task_strings[task]) *strings.Add() = string;
  }
}

// A result's tokens, counted with those that the mask hides.
void AddTokens(const EncodedSequence& sequence, size_t task,
               google::protobuf::RepeatedField<int32_t>& tokens) {
  std::vector<int32_t> unmasked;
  for (size_t i = 0; i < sequence.token_ids.size(); ++i) {
    if (!sequence.masked(i)) unmasked.push_back(static_cast<int32_t>(i));
  }
  for (const int32_t token : sequence.result.tasks[task].tokens) {
    tokens.Add(unmasked[static_cast<size_t>(token)]);
  }
}

void AddSparse(const EncodeOutput& output, size_t task, const AnswerForm& form,
               v1::EncodeResponse& response) {
  v1::SparseVectors& sparse = *response.mutable_sparse();
  const int64_t shape[] = {CountValues(output, task)};
  AppendResults(output, task, form.numbers,
                StartTensor(shape, form.numbers, *sparse.mutable_weights()), *sparse.mutable_ids(),
                *sparse.mutable_token_strings());
  for (int i = 0; i < response.sequences_size(); ++i) {
    const HeadResult& result = output.sequences[static_cast<size_t>(i)].result.tasks[task];
    response.mutable_sequences(i)->set_sparse_weights(static_cast<int64_t>(result.values.size()));
  }
}

void AddFillMask(const EncodeOutput& output, size_t task, const AnswerForm& form,
                 v1::EncodeResponse& response) {
  v1::MaskPredictions& predictions = *response.mutable_fill_mask();
  const int64_t columns = output.tasks[task].columns;
  const int64_t shape[] = {CountValues(output, task) / columns, columns};
  AppendResults(output, task, form.numbers,
                StartTensor(shape, form.numbers, *predictions.mutable_scores()),
                *predictions.mutable_token_ids(), *predictions.mutable_token_strings());
  for (int i = 0; i < response.sequences_size(); ++i) {
    AddTokens(output.sequences[static_cast<size_t>(i)], task,
              *response.mutable_sequences(i)->mutable_mask_tokens());
  }
}

// Shaped as the last hidden state.
void AddTokenScores(const EncodeOutput& output, size_t task, const AnswerForm& form,
                    v1::EncodeResponse& response) {
  const int64_t labels = output.tasks[task].columns;
  std::vector<int64_t> shape = {output.tokens(), labels};
  if (form.padded) {
    shape = {static_cast<int64_t>(output.sequences.size()), output.sequences.front().len(), labels};
  }
  std::string& bytes = StartTensor(shape, form.numbers, *response.mutable_token_scores());
  for (const EncodedSequence& sequence : output.sequences) {
    AppendHiddenState(sequence, labels, sequence.result.tasks[task].values.data(), form.numbers,
                      bytes);
  }
}

void AddMultiVectors(const EncodeOutput& output, size_t task, const AnswerForm& form,
                     v1::EncodeResponse& response) {
  const int64_t columns = output.tasks[task].columns;
  const int64_t shape[] = {CountValues(output, task) / columns, columns};
  std::string& bytes = StartTensor(shape, form.numbers, *response.mutable_multi_vectors());
  for (int i = 0; i < response.sequences_size(); ++i) {
    const EncodedSequence& sequence = output.sequences[static_cast<size_t>(i)];
    AppendValues(sequence.result.tasks[task].values, form.numbers, bytes);
    AddTokens(sequence, task, *response.mutable_sequences(i)->mutable_vector_tokens());
  }
}

void AddTask(const EncodeOutput& output, size_t task, const AnswerForm& form,
             v1::EncodeResponse& response) {
  switch (output.tasks[task].kind) {
    case TaskKind::kSparse:
      return AddSparse(output, task, form, response);
    case TaskKind::kFillMask:
      return AddFillMask(output, task, form, response);
    case TaskKind::kTokenScores:
      return AddTokenScores(output, task, form, response);
    case TaskKind::kMultiVector:
      return AddMultiVectors(output, task, form, response);
  }
}

}  // namespace

void TasksFromProto(const v1::OutputSelection& outputs, EncodeInput& input) {
  if (outputs.has_sparse()) {
    input.tasks.push_back({.kind = TaskKind::kSparse, .top_k = outputs.sparse().top_k()});
  }
  if (outputs.has_fill_mask()) {
    input.tasks.push_back({.kind = TaskKind::kFillMask,
                           .top_k = outputs.fill_mask().top_k(),
                           .raw = outputs.fill_mask().raw()});
  }
  if (outputs.has_token_scores()) {
    input.tasks.push_back({.kind = TaskKind::kTokenScores, .raw = outputs.token_scores().raw()});
  }
  if (outputs.has_multi_vector()) input.tasks.push_back({.kind = TaskKind::kMultiVector});
}

void TasksToProto(EncodeOutput& output, const AnswerForm& form, v1::EncodeResponse& response) {
  for (size_t task = 0; task < output.tasks.size(); ++task) {
    AddTask(output, task, form, response);
    for (EncodedSequence& sequence : output.sequences) sequence.result.tasks[task] = {};
  }
}

}  // namespace attendant
