// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/app/model_sources.h"
#include "server/flags.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_loader.h"

namespace attendant {

// The whole server. RunningApp is its implementation: apart, because its headers are those of all
// modules. Thread-safe after Start.
class App {
 public:
  static constexpr absl::Duration kGoawayAfter = absl::Seconds(2);

  // Listens on both ports, then starts to load the models of `sources` that the flags select.
  // Errors name the flag and the address.
  static absl::StatusOr<std::unique_ptr<App>> Start(const ServerFlags& flags,
                                                    const ModelSources& sources);
  // Starts a server that loads models with `loader`. A drain that lasts for `goaway_after` sends
  // GOAWAY.
  static absl::StatusOr<std::unique_ptr<App>> Start(const ServerFlags& flags,
                                                    const ModelSources& sources, ModelLoader loader,
                                                    absl::Duration goaway_after = kGoawayAfter);
  // Closes the ports, and stops without grace unless Run has returned. gRPC may end calls that
  // arrive at that moment with CANCELLED; the end of a process does not.
  virtual ~App() = default;

  // Serves until RequestStop, then drains: health says NOT_SERVING, new requests are refused,
  // admitted ones are answered until the drain timeout. OK after that. When no model could be
  // loaded, and none can come later, Run ends at once with the first load error. New requests are
  // refused with UNAVAILABLE until the App is destroyed.
  virtual absl::Status Run() = 0;

  virtual void RequestStop() = 0;

  virtual int grpc_port() const = 0;
  virtual int http_port() const = 0;
  virtual const ServerMetrics& metrics() const = 0;
};

}  // namespace attendant
