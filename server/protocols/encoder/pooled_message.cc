// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/encoder/pooled_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/protocols/wire/messages.h"

namespace attendant {
namespace {

// A row of bytes, quantized.
void AppendQuantized(EmbeddingFormat format, std::span<const float> values, std::string& bytes,
                     std::vector<float>& scales) {
  if (format == EmbeddingFormat::kInt8) {
    const Int8Embedding embedding = QuantizeInt8(values);
    bytes.append(reinterpret_cast<const char*>(embedding.values.data()), embedding.values.size());
    scales.push_back(embedding.scale);
    return;
  }
  const uint8_t offset = format == EmbeddingFormat::kBinary ? 0x80 : 0;  // 128, modulo 256
  for (const uint8_t byte : PackSigns(values)) bytes.push_back(static_cast<char>(byte ^ offset));
}

v1::DType ToProto(EmbeddingFormat format) {
  switch (format) {
    case EmbeddingFormat::kInt8:
      return v1::DTYPE_INT8;
    case EmbeddingFormat::kBinary:
      return v1::DTYPE_BINARY;
    case EmbeddingFormat::kUbinary:
      return v1::DTYPE_UBINARY;
    case EmbeddingFormat::kNumbers:
      break;
  }
  return v1::DTYPE_UNSPECIFIED;
}

// The embeddings of a sequence: one, or one for each span.
size_t NumRows(const EncodedSequence& sequence) {
  return std::max<size_t>(sequence.rare_outputs().spans.size(), 1);
}

int64_t CountRows(const EncodeOutput& output) {
  size_t rows = 0;
  for (const EncodedSequence& sequence : output.sequences) rows += NumRows(sequence);
  return static_cast<int64_t>(rows);
}

int64_t RowValues(const EncodeOutput& output) {
  const EncodedSequence& first = output.sequences.front();
  return static_cast<int64_t>(first.result.pooled.size() / NumRows(first));
}

void AddQuantized(EmbeddingFormat format, const EncodeOutput& output,
                  v1::EncodeResponse& response) {
  const int64_t rows = CountRows(output), dims = RowValues(output);
  const int64_t row_bytes = EmbeddingBytes(format, dims);
  v1::Tensor& tensor = *response.mutable_pooled();
  tensor.set_dtype(ToProto(format));
  tensor.add_shape(rows);
  tensor.add_shape(row_bytes);
  tensor.mutable_data()->reserve(static_cast<size_t>(rows * row_bytes));
  std::vector<float> scales;
  for (const EncodedSequence& sequence : output.sequences) {
    for (size_t row = 0; row < NumRows(sequence); ++row) {
      const auto width = static_cast<size_t>(dims);
      AppendQuantized(format, std::span(sequence.result.pooled).subspan(row * width, width),
                      *tensor.mutable_data(), scales);
    }
  }
  if (format != EmbeddingFormat::kInt8) return;
  const int64_t shape[] = {rows};
  AppendValues(scales, NumberFormat::kF32,
               StartTensor(shape, NumberFormat::kF32, *response.mutable_pooled_scales()));
}

}  // namespace

void AddPooled(const AnswerForm& form, const EncodeOutput& output, v1::EncodeResponse& response) {
  if (form.pooled != EmbeddingFormat::kNumbers) return AddQuantized(form.pooled, output, response);
  const int64_t shape[] = {CountRows(output), RowValues(output)};
  std::string& bytes = StartTensor(shape, form.pooled_numbers, *response.mutable_pooled());
  for (const EncodedSequence& sequence : output.sequences) {
    AppendValues(sequence.result.pooled, form.pooled_numbers, bytes);
  }
}

}  // namespace attendant
