// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/encoder/messages.h"

#include <string>
#include <utility>
#include <vector>

#include "server/requests/encode_output.h"
#include "server/rpc/wire/messages.h"

namespace attendant {
namespace {

v1::Pooling EncodePooling(Pooling pooling) {
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
  }
  return v1::POOLING_UNSPECIFIED;
}

// [tokens, hidden] of ragged input, [batch, seq, hidden] of padded; `outer` comes before.
std::string& StartHiddenStates(const ResponseFormat& format, const EncodeOutput& output,
                               std::vector<int64_t> outer, v1::Tensor& tensor) {
  std::vector<int64_t> shape = std::move(outer);
  if (format.padded) {
    shape.push_back(static_cast<int64_t>(output.sequences.size()));
    shape.push_back(static_cast<int64_t>(output.sequences.front().token_ids.size()));
  } else {
    int64_t tokens = 0;
    for (const EncodedSequence& sequence : output.sequences) {
      tokens += static_cast<int64_t>(sequence.token_ids.size());
    }
    shape.push_back(tokens);
  }
  shape.push_back(output.hidden);
  return StartTensor(shape, format.numbers, tensor);
}

void EncodeLastHiddenState(const ResponseFormat& format, EncodeOutput& output, v1::Tensor& tensor) {
  std::string& bytes = StartHiddenStates(format, output, {}, tensor);
  for (EncodedSequence& sequence : output.sequences) {
    AppendHiddenState(sequence, output.hidden, sequence.result.last_hidden_state.data(),
                      format.numbers, bytes);
    std::vector<float>().swap(sequence.result.last_hidden_state);
  }
}

void EncodeHiddenStates(const ResponseFormat& format, EncodeOutput& output, v1::Tensor& tensor) {
  const size_t layers = output.layers.hidden_layers.size();
  std::string& bytes = StartHiddenStates(format, output, {static_cast<int64_t>(layers)}, tensor);
  for (size_t layer = 0; layer < layers; ++layer) {
    for (const EncodedSequence& sequence : output.sequences) {
      const std::vector<float>& states = sequence.result.hidden_states;
      AppendHiddenState(sequence, output.hidden, states.data() + layer * (states.size() / layers),
                        format.numbers, bytes);
    }
  }
  for (EncodedSequence& sequence : output.sequences) {
    std::vector<float>().swap(sequence.result.hidden_states);
  }
}

void EncodeAttentionWeights(const ResponseFormat& format, EncodeOutput& output,
                            v1::EncodeResponse& response) {
  const auto layers = static_cast<int64_t>(output.layers.attention_layers.size());
  const auto heads = static_cast<int64_t>(output.layers.attention_heads.size());
  for (EncodedSequence& sequence : output.sequences) {
    const auto len = static_cast<int64_t>(sequence.token_ids.size());
    const int64_t shape[] = {layers, heads, len, len};
    std::string& bytes = StartTensor(shape, format.numbers, *response.add_attention_weights());
    AppendAttentionWeights(sequence, layers * heads, format.numbers, bytes);
    std::vector<float>().swap(sequence.result.attention_weights);
  }
}

void EncodePooled(const ResponseFormat& format, const EncodeOutput& output, v1::Tensor& tensor) {
  const int64_t shape[] = {
      static_cast<int64_t>(output.sequences.size()),
      static_cast<int64_t>(output.sequences.front().result.pooled.size())};  // [batch, dims]
  std::string& bytes = StartTensor(shape, format.numbers, tensor);
  for (const EncodedSequence& sequence : output.sequences) {
    AppendValues(sequence.result.pooled, format.numbers, bytes);
  }
}

void EncodeSequenceInfo(const ResponseFormat& format, const EncodedSequence& sequence,
                        v1::SequenceInfo& info) {
  for (const std::string& token : sequence.token_strings) info.add_token_strings(token);
  info.set_tokens(static_cast<int64_t>(sequence.token_ids.size()));
  info.set_truncated(sequence.truncated);
  if (format.token_ids) {
    info.mutable_token_ids()->Add(sequence.token_ids.begin(), sequence.token_ids.end());
  }
}

}  // namespace

v1::ModelState EncodeModelState(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return v1::MODEL_STATE_LOADING;
    case ModelState::kReady:
      return v1::MODEL_STATE_READY;
    case ModelState::kFailed:
    case ModelState::kLost:
      return v1::MODEL_STATE_FAILED;
    case ModelState::kDraining:
      return v1::MODEL_STATE_DRAINING;
  }
  return v1::MODEL_STATE_UNSPECIFIED;
}

void EncodeResponseTensors(const ResponseFormat& format, EncodeOutput& output,
                           v1::EncodeResponse& response) {
  for (const EncodedSequence& sequence : output.sequences) {
    EncodeSequenceInfo(format, sequence, *response.add_sequences());
  }
  if (format.last_hidden_state) {
    EncodeLastHiddenState(format, output, *response.mutable_last_hidden_state());
  }
  if (!output.layers.hidden_layers.empty()) {
    EncodeHiddenStates(format, output, *response.mutable_hidden_states());
  }
  if (output.layers.attention_maps() > 0) EncodeAttentionWeights(format, output, response);
  if (!output.sequences.front().result.pooled.empty()) {
    EncodePooled(format, output, *response.mutable_pooled());
  }
}

void EncodeModelInfo(const ModelStatus& status, v1::ModelInfo& info) {
  info.set_name(status.name);
  info.set_state(EncodeModelState(status.state));
  if (!status.error.ok()) info.set_error(std::string(status.error.message()));
  if (status.encoder() == nullptr) return;
  const EncoderModel& model = *status.encoder();
  const PreparedInfo& prepared = model.encoder->info();
  info.set_backend(prepared.backend);
  info.set_isa(prepared.isa);
  info.set_dtype(std::string(DTypeName(prepared.dtype)));
  info.set_layers(model.config().layers);
  info.set_heads(model.config().heads);
  info.set_hidden(model.config().hidden);
  info.set_vocab(model.config().vocab);
  info.set_max_sequence_tokens(model.max_sequence_tokens);
  info.set_max_text_tokens(model.sentence.max_text_tokens);
  info.set_pooling(EncodePooling(model.sentence.pooling));
  info.set_normalize(model.sentence.normalize);
}

}  // namespace attendant
