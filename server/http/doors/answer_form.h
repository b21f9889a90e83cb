// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/json/json_view.h"

namespace attendant {

// Fields by which other servers' clients ask for an answer in another form. The doors that answer
// with one vector of f32 for each input, as numbers or in base64, refuse the values that ask for
// anything else: an answer that ignored them would be read wrongly.
//   output_dtype (Voyage, Mistral), embedding_type (NVIDIA, Jina), encoding_type (LlamaIndex for
//   Jina), embedding_types (Cohere): float, or an array of it
//   embed_dtype, endianness (vLLM): float32; native or little
//   return_multivector, late_chunking (Jina): false
//   modality (Infinity, NVIDIA): text, or an array of it
// INVALID_ARGUMENT names the field and its value.
absl::Status CheckAnswerForm(JsonView request);
// Properties of a schema: those fields.
std::string AnswerFormProperties();

// INVALID_ARGUMENT where a field is there and neither `word` nor an array of it.
absl::Status CheckOnlyWord(JsonView request, absl::string_view field, absl::string_view word);

}  // namespace attendant
