// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/rpc/tei/method.h"
#include "server/rpc/tei/runs.h"
#include "tei/v1/tei.grpc.pb.h"

namespace attendant::tei {

class EmbedRun final : public TeiRun<v1::EmbedRequest, v1::EmbedResponse> {
 public:
  using TeiRun::TeiRun;

 private:
  absl::StatusOr<EncodeInput> FromMessage() override;
  void Fill(EncodeOutput& output, v1::EmbedResponse& response) override;
};

class EmbedAllRun final : public TeiRun<v1::EmbedAllRequest, v1::EmbedAllResponse> {
 public:
  using TeiRun::TeiRun;

 private:
  absl::StatusOr<EncodeInput> FromMessage() override;
  void Fill(EncodeOutput& output, v1::EmbedAllResponse& response) override;
};

class EmbedSparseRun final : public TeiRun<v1::EmbedSparseRequest, v1::EmbedSparseResponse> {
 public:
  using TeiRun::TeiRun;

 private:
  absl::StatusOr<EncodeInput> FromMessage() override;
  void Fill(EncodeOutput& output, v1::EmbedSparseResponse& response) override;
  int64_t TextBytes(const EncodeOutput& output) const override;
};

// tei.v1.Embed.
class EmbedService final : public RawService<v1::Embed> {
 public:
  explicit EmbedService(const Dependencies& dependencies);

 private:
  TeiMethod<EmbedRun> embed_;
  TeiMethod<EmbedAllRun> embed_all_;
  TeiMethod<EmbedSparseRun> embed_sparse_;
};

}  // namespace attendant::tei
