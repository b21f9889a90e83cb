// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/encoder.pb.h"
#include "client/client.h"

namespace attendant::client {

// Translates the client's structs to the messages of attendant.v1, and back. Every size and shape
// in an answer is checked.

// INVALID_ARGUMENT names the sequence whose text is not UTF-8. Protobuf checks texts too, but its
// error names neither the sequence nor the byte.
absl::StatusOr<v1::EncodeRequest> ToProto(const EncodeRequest& request);
v1::DType ToProto(DType dtype);

// INTERNAL if sizes and shapes of the answer disagree.
absl::StatusOr<EncodeResult> FromProto(const v1::EncodeResponse& response);
absl::StatusOr<Tensor> FromProto(const v1::Tensor& tensor);

Timings FromProto(const v1::Timings& timings);
ModelInfo FromProto(const v1::ModelInfo& model);
std::string FromProto(v1::ModelState state);  // "ready"

}  // namespace attendant::client
