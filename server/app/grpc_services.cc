// SPDX-License-Identifier: Apache-2.0
#include "server/app/grpc_services.h"

#include <utility>

#include "server/app/app_options.h"
#include "server/limits/limits.h"
#include "server/rpc/attention_service.h"
#include "server/rpc/encoder_service.h"
#include "server/rpc/kserve_service.h"
#include "server/rpc/reflection_service.h"
#include "server/rpc/tei/embed.h"
#include "server/rpc/tei/info.h"
#include "server/rpc/tei/predict.h"
#include "server/rpc/tei/rerank.h"
#include "server/rpc/tei/tokenize.h"
#include "server/version.h"

namespace attendant {

GrpcServices::GrpcServices(const ServerFlags& flags, const EncodeDependencies& encode,
                           const AttendDependencies& attend, HealthService& health)
    : tei_{encode, MakeStreamLimits(flags), kVersion},
      unknown_methods_(encode.requests.gate, encode.requests.budgets) {
  const StreamLimits& streams = tei_.streams;
  open_methods_.push_back(&unknown_methods_.open_method());
  Serve(health);
  Serve(std::make_unique<EncoderService>(encode, streams));
  if (flags.attention_service) Serve(std::make_unique<AttentionService>(attend, streams));
  Serve(std::make_unique<KServeService>(encode, kVersion, streams, flags.system_shared_memory));
  Serve(std::make_unique<tei::InfoService>(tei_));
  Serve(std::make_unique<tei::EmbedService>(tei_));
  Serve(std::make_unique<tei::PredictService>(tei_));
  Serve(std::make_unique<tei::RerankService>(tei_));
  Serve(std::make_unique<tei::TokenizeService>(tei_));
  if (flags.reflection) {  // the last one, since it lists the others
    Serve(
        std::make_unique<ReflectionService>(encode.requests.gate, encode.requests.budgets, names_));
  }
}

template <typename Proto>
void GrpcServices::Serve(RawService<Proto>& service) {
  services_.push_back(&service);
  names_.push_back(Proto::service_full_name());
  const std::vector<OpenMethod*>& methods = service.open_methods();
  open_methods_.insert(open_methods_.end(), methods.begin(), methods.end());
}

template <typename Service>
void GrpcServices::Serve(std::unique_ptr<Service> service) {
  Serve(*service);
  owned_.push_back(std::move(service));
}

}  // namespace attendant
