// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "attendant/v1/encoder.pb.h"

namespace attendant::client {

inline constexpr int64_t kFakeHidden = 4;

// The answer of FakeServer's model. Rows have `width` values, at least kFakeHidden; of each tensor
// that is not quantized come the first `cut_bytes` bytes.
void FakeAnswer(const v1::EncodeRequest& request, size_t cut_bytes, int64_t width,
                v1::EncodeResponse* response);

}  // namespace attendant::client
