// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/encoder.grpc.pb.h"
#include "server/limits/limits.h"
#include "server/requests/encode_run.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/call/request_method.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// Limits of an EncodeRequest.
WireRules EncodeRules(const EncodeLimits& limits);

// attendant.v1.Encoder on gRPC's callback API: no call has a thread of its own. Thread-safe.
class EncoderService final : public RawService<v1::Encoder> {
 public:
  // `dependencies` must outlive the service.
  explicit EncoderService(const EncodeDependencies& dependencies, const StreamLimits& limits = {});

 private:
  RequestMethod<v1::EncodeRequest, v1::EncodeResponse, v1::EncodeStreamResponse> encode_;
};

}  // namespace attendant
