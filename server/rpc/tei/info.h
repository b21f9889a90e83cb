// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/rpc/call/raw_service.h"
#include "server/rpc/tei/method.h"
#include "tei/v1/tei.grpc.pb.h"

namespace attendant::tei {

// tei.v1.Info.
class InfoService final : public RawService<::tei::v1::Info> {
 public:
  explicit InfoService(const Dependencies& dependencies);
};

}  // namespace attendant::tei
