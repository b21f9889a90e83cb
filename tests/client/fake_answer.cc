// SPDX-License-Identifier: Apache-2.0
#include "tests/client/fake_answer.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace attendant::client {
namespace {

void AppendFloats(std::initializer_list<double> values, std::string* out) {
  for (double value : values) {
    const float single = static_cast<float>(value);
    out->append(reinterpret_cast<const char*>(&single), sizeof(single));
  }
}

std::vector<int32_t> TokensOf(const v1::Sequence& sequence) {
  if (sequence.has_ids()) {
    return {sequence.ids().token_ids().begin(), sequence.ids().token_ids().end()};
  }
  std::vector<int32_t> ids(sequence.text().size() + 2);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 100 + static_cast<int32_t>(i);
  return ids;
}

// Of int8 embeddings; the scale of each is its number of tokens.
void AnswerQuantized(v1::EncodeResponse& response) {
  v1::Tensor& pooled = *response.mutable_pooled();
  v1::Tensor& scales = *response.mutable_pooled_scales();
  pooled.set_dtype(v1::DTYPE_INT8);
  scales.set_dtype(v1::DTYPE_F32);
  for (v1::Tensor* tensor : {&pooled, &scales}) tensor->add_shape(response.sequences_size());
  pooled.add_shape(kFakeHidden);
  for (const v1::SequenceInfo& info : response.sequences()) {
    pooled.mutable_data()->append("\1\0\0\0", kFakeHidden);
    AppendFloats({static_cast<double>(info.tokens())}, scales.mutable_data());
  }
}

}  // namespace

void FakeAnswer(const v1::EncodeRequest& request, size_t cut_bytes, int64_t width,
                v1::EncodeResponse* response) {
  const std::string more(static_cast<size_t>(width - kFakeHidden) * sizeof(float), '\0');
  std::string states, pooled;
  int64_t tokens = 0;
  for (const v1::Sequence& sequence : request.sequences().sequences()) {
    const std::vector<int32_t> ids = TokensOf(sequence);
    auto* info = response->add_sequences();
    info->set_tokens(static_cast<int64_t>(ids.size()));
    if (request.outputs().token_ids()) info->mutable_token_ids()->Add(ids.begin(), ids.end());
    for (size_t t = 0; t < ids.size(); ++t) {
      AppendFloats({static_cast<double>(ids[t]), static_cast<double>(t), 0, 1}, &states);
      states += more;
    }
    AppendFloats({static_cast<double>(ids.size()), 1, 0, 0}, &pooled);
    pooled += more;
    tokens += static_cast<int64_t>(ids.size());
  }
  const auto fill = [&](int64_t rows, const std::string& data, v1::Tensor* tensor) {
    tensor->set_dtype(v1::DTYPE_F32);
    tensor->add_shape(rows);
    tensor->add_shape(width);
    tensor->set_data(data.substr(0, cut_bytes));
  };
  if (request.outputs().last_hidden_state()) {
    fill(tokens, states, response->mutable_last_hidden_state());
  }
  if (request.outputs().pooled().dtype() == v1::DTYPE_INT8) {
    AnswerQuantized(*response);
  } else if (request.outputs().has_pooled()) {
    fill(response->sequences_size(), pooled, response->mutable_pooled());
  }
  response->set_model(request.model());
  response->mutable_timings()->set_queue_us(100);
  response->mutable_timings()->set_compute_us(300);
  response->mutable_timings()->set_total_us(500);
}

}  // namespace attendant::client
