// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/requests/text_runs.h"
#include "server/rpc/tei/method.h"
#include "tei/v1/tei.grpc.pb.h"

namespace attendant::tei {

class TokensRun final : public TokenizeRun {
 public:
  using Request = ::tei::v1::EncodeRequest;
  using Response = ::tei::v1::EncodeResponse;

  TokensRun(const EncodeDependencies& dependencies, RequestCall call, Response& response)
      : TokenizeRun(dependencies, std::move(call)), response_(response) {}

 private:
  absl::StatusOr<TokenizeInput> InputFromMessage() override;
  int64_t TokenBytes(const TextToken& token) const override;
  void ToMessage() override;
  int64_t AnswerBytes() const override { return static_cast<int64_t>(response_.ByteSizeLong()); }

  Response& response_;
};

class DecodeRun final : public DetokenizeRun {
 public:
  using Request = ::tei::v1::DecodeRequest;
  using Response = ::tei::v1::DecodeResponse;

  DecodeRun(const EncodeDependencies& dependencies, RequestCall call, Response& response)
      : DetokenizeRun(dependencies, std::move(call)), response_(response) {}

 private:
  absl::StatusOr<DetokenizeInput> InputFromMessage() override;
  int64_t bytes_of_byte() const override { return 1; }
  void ToMessage() override { response_.set_text(texts()[0]); }
  int64_t AnswerBytes() const override { return static_cast<int64_t>(response_.ByteSizeLong()); }

  Response& response_;
};

// tei.v1.Tokenize.
class TokenizeService final : public RawService<::tei::v1::Tokenize> {
 public:
  explicit TokenizeService(const Dependencies& dependencies);

 private:
  TeiMethod<TokensRun> tokenize_;
  TeiMethod<DecodeRun> decode_;
};

}  // namespace attendant::tei
