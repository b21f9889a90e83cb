// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/rpc/tei/method.h"
#include "server/rpc/tei/runs.h"
#include "tei/v1/tei.grpc.pb.h"

namespace attendant::tei {

// A PredictRequest has one text, a PredictPairRequest two.
template <typename Request>
class PredictRun final : public TeiRun<Request, v1::PredictResponse> {
 public:
  using TeiRun<Request, v1::PredictResponse>::TeiRun;

 private:
  absl::StatusOr<EncodeInput> FromMessage() override;
  void Fill(EncodeOutput& output, v1::PredictResponse& response) override;
  int64_t TextBytes(const EncodeOutput& output) const override;
};

// tei.v1.Predict.
class PredictService final : public RawService<v1::Predict> {
 public:
  explicit PredictService(const Dependencies& dependencies);

 private:
  TeiMethod<PredictRun<v1::PredictRequest>> predict_;
  TeiMethod<PredictRun<v1::PredictPairRequest>> predict_pair_;
};

}  // namespace attendant::tei
