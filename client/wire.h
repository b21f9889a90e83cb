// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/encoder.pb.h"
#include "client/client.h"

namespace attendant::client {

// Between the client's structs and the messages of attendant.v1. Nothing in an answer is trusted.

// INVALID_ARGUMENT, naming the sequence, when a text is not UTF-8.
absl::StatusOr<v1::EncodeRequest> ToProto(const EncodeRequest& request);

// INTERNAL when sizes and shapes of the answer disagree.
absl::StatusOr<EncodeResult> FromProto(const v1::EncodeResponse& response);
absl::StatusOr<Tensor> FromProto(const v1::Tensor& tensor);

ModelInfo FromProto(const v1::ModelInfo& model);

// The offset of the first byte that is not part of valid UTF-8, or npos.
size_t FindInvalidUtf8(absl::string_view text);

}  // namespace attendant::client
