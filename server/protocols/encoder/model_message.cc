// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/encoder/model_message.h"

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/heads/head.h"
#include "server/models/encoder_model.h"
#include "server/protocols/wire/messages.h"
#include "server/requests/only_model.h"
#include "server/requests/tasks.h"

namespace attendant {
namespace {

v1::Pooling ToProto(Pooling pooling) {
  switch (pooling) {
    case Pooling::kNone:
      return v1::POOLING_UNSPECIFIED;
    case Pooling::kMean:
      return v1::POOLING_MEAN;
    case Pooling::kCls:
      return v1::POOLING_CLS;
    case Pooling::kMax:
      return v1::POOLING_MAX;
    case Pooling::kLast:
      return v1::POOLING_LAST;
    case Pooling::kMeanSqrtLen:
      return v1::POOLING_MEAN_SQRT_LEN;
    case Pooling::kWeightedMean:
      return v1::POOLING_WEIGHTED_MEAN;
  }
  return v1::POOLING_UNSPECIFIED;
}

void ToProto(const EncoderFacts& facts, v1::ModelInfo& info) {
  info.set_hidden(facts.hidden);
  info.set_embedding_dims(facts.embedding_dims);
  info.set_max_sequence_tokens(facts.max_sequence_tokens);
  if (Classifies(facts) || Ranks(facts)) info.add_tasks("scores");
  for (size_t kind = 0; kind < facts.task_columns.size(); ++kind) {
    if (!facts.task_columns[kind].has_value()) continue;
    info.add_tasks(std::string(TaskName(static_cast<TaskKind>(kind))));
  }
}

void ToProto(const EncoderInfo& model, v1::ModelInfo& info) {
  info.set_backend(model.backend);
  info.set_isa(model.isa);
  info.set_dtype(std::string(DTypeName(model.dtype)));
  info.set_layers(model.layers);
  info.set_heads(model.heads);
  info.set_vocab(model.vocab);
  info.set_max_text_tokens(model.max_text_tokens);
  for (const Pooling pooling : model.poolings) info.add_poolings(ToProto(pooling));
  if (model.poolings.size() == 1) info.set_pooling(ToProto(model.poolings.front()));
  info.set_normalize(model.normalize);
  if (model.labels.has_value()) {
    info.mutable_labels()->Add(model.labels->begin(), model.labels->end());
  }
  info.mutable_token_labels()->Add(model.token_labels.begin(), model.token_labels.end());
  info.mutable_prompt_names()->Add(model.prompt_names.begin(), model.prompt_names.end());
  info.set_default_prompt_name(model.default_prompt_name);
}

}  // namespace

void ToProto(const ModelStatus& status, v1::ModelInfo& info) {
  info.set_name(status.name);
  info.set_version(status.version);
  info.set_state(StateToProto(status));
  if (!status.error.ok()) info.set_error(std::string(status.error.message()));
  if (status.facts.has_value()) ToProto(*status.facts, info);
  if (status.info != nullptr) ToProto(*status.info, info);
}

}  // namespace attendant
