// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "server/limits/limits.h"
#include "server/requests/encode_run.h"
#include "server/rpc/tei/embed.h"
#include "server/rpc/tei/info.h"
#include "server/rpc/tei/method.h"
#include "server/rpc/tei/predict.h"
#include "server/rpc/tei/rerank.h"
#include "server/rpc/tei/tokenize.h"

namespace attendant {

// The services of tei.v1, the gRPC interface of text-embeddings-inference. Thread-safe.
class TeiServices {
 public:
  // `encode` must outlive the services.
  TeiServices(const EncodeDependencies& encode, std::string version, const StreamLimits& streams)
      : dependencies_{encode, streams, std::move(version)} {}

  std::vector<grpc::Service*> services() {
    return {&info_, &embed_, &predict_, &rerank_, &tokenize_};
  }
  // Their full names.
  static std::vector<std::string> names();

  // As RawService::open_methods, of all.
  std::vector<OpenMethod*> open_methods() const;

 private:
  const tei::Dependencies dependencies_;
  tei::InfoService info_{dependencies_};
  tei::EmbedService embed_{dependencies_};
  tei::PredictService predict_{dependencies_};
  tei::RerankService rerank_{dependencies_};
  tei::TokenizeService tokenize_{dependencies_};
};

}  // namespace attendant
