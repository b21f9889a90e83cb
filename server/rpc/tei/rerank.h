// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/call/calls.h"
#include "server/rpc/call/raw_service.h"
#include "server/rpc/call/reading_call.h"
#include "server/rpc/tei/method.h"
#include "server/rpc/tei/runs.h"
#include "tei/v1/tei.grpc.pb.h"

namespace attendant::tei {

class RerankRun final : public TeiRun<v1::RerankRequest, v1::RerankResponse> {
 public:
  using TeiRun::TeiRun;

 private:
  absl::StatusOr<EncodeInput> FromMessage() override;
  void Fill(EncodeOutput& output, v1::RerankResponse& response) override;
  int64_t TextBytes(const EncodeOutput& output) const override;

  std::vector<std::string> texts_;  // those to be sent back
};

// tei.v1.Rerank.
class RerankService final : public RawService<v1::Rerank> {
 public:
  explicit RerankService(const Dependencies& dependencies);

 private:
  // The messages of one call, and then the request that they make.
  class Texts;

  const Dependencies& dependencies_;
  TeiMethod<RerankRun> rerank_;
  OpenMethodOf<ReadingCall> streams_;
};

}  // namespace attendant::tei
