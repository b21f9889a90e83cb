// SPDX-License-Identifier: Apache-2.0
// Bytes as they come from the wire: what the scan lets pass takes no more memory than it says, and
// what it calls no message is none.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <memory>

#include "absl/strings/match.h"
#include "kernels/core/check.h"
#include "server/rpc/attention_service.h"
#include "server/rpc/encoder_service.h"
#include "server/rpc/kserve_service.h"
#include "server/rpc/scan/wire_scan.h"
#include "tests/fuzz/harness.h"

namespace attendant {
namespace {

constexpr EncodeLimits kLimits = {.max_request_sequences = 64};
constexpr int64_t kFixedBytes = 128 << 10;  // kMaxElements of each kind

template <typename M>
void Check(const WireSchema& schema, const uint8_t* data, size_t size) {
  const auto bytes = static_cast<int64_t>(size);
  WireSummary summary;
  google::protobuf::io::ArrayInputStream stream(data, static_cast<int>(size), 5);
  const absl::Status status = ScanWire(schema, bytes, stream, summary);
  M message;
  const bool parsed = message.ParseFromArray(data, static_cast<int>(size));
  if (status.ok()) {
    ATTENDANT_CHECK(static_cast<int64_t>(message.SpaceUsedLong()) <= summary.memory_bytes);
    ATTENDANT_CHECK(summary.memory_bytes <= 64 * bytes + kFixedBytes);
    ATTENDANT_CHECK(!parsed || summary.id == message.id());
  } else if (absl::StartsWith(status.message(), "not a message") &&
             !absl::StrContains(status.message(), "group")) {
    ATTENDANT_CHECK(!parsed);
  }
}

}  // namespace
}  // namespace attendant

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attendant;
  static const WireSchema attend(*v1::AttendRequest::descriptor(), AttendRules());
  static const WireSchema encode(*v1::EncodeRequest::descriptor(), EncodeRules(kLimits));
  static const WireSchema infer(*inference::ModelInferRequest::descriptor(), InferRules(kLimits));
  if (size == 0) return 0;
  switch (data[0] % 3) {
    case 0:
      Check<v1::AttendRequest>(attend, data + 1, size - 1);
      break;
    case 1:
      Check<v1::EncodeRequest>(encode, data + 1, size - 1);
      break;
    default:
      Check<inference::ModelInferRequest>(infer, data + 1, size - 1);
  }
  return 0;
}
