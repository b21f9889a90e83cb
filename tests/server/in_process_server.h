// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/app/app.h"
#include "server/models/model_options.h"
#include "tests/server/gated_backend.h"
#include "tests/server/tiny_model.h"
#include "tests/support/checkpoint.h"

namespace attendant {

// The whole server in this process, on free loopback ports, with the tiny model "tiny" on the
// reference back end behind gates.
class InProcessServer {
 public:
  struct Options {
    ServerFlags flags{};
    std::function<void(const std::string& folder)> write_model = WriteTinyModel;  // "tiny"
    std::vector<std::string> broken_models = {};  // served beside "tiny"; no such folders
    std::vector<ModelSource> models = {};         // served beside "tiny", ready when that one is
    bool load_gate_open = true;
    absl::Duration goaway_after = App::kGoawayAfter;  // from the start of the drain
  };
  InProcessServer() : InProcessServer(Options{}) {}
  explicit InProcessServer(const Options& options);
  // With limits that an answer about them cannot mix up: 2,000 tokens and 70 sequences in a batch,
  // 300 requests in the queue, 60 sequences in a request.
  static Options WithDistinctLimits();
  // Opens the gates and stops.
  ~InProcessServer();

  // Until "tiny" is ready.
  void AwaitReady();
  // Starts the drain.
  void RequestStop() { app_->RequestStop(); }
  // Until Run has returned; its status.
  absl::Status AwaitStopped();

  // A channel with a connection of its own.
  std::shared_ptr<grpc::Channel> NewChannel() const { return NewChannel({}); }
  // The same, whose client lets at most 64 KiB of each call lie unread, as HTTP/2 has it. gRPC's
  // would take ever more of a fast server.
  std::shared_ptr<grpc::Channel> NewChannelOfSlowReader() const;

  // The answer to a request, which must have one.
  v1::EncodeResponse Encode(const v1::EncodeRequest& request);
  // Why a request is refused, which must be for INVALID_ARGUMENT.
  std::string Refusal(const v1::EncodeRequest& request);

  v1::Encoder::Stub& encoder() { return *encoder_; }
  grpc::health::v1::Health::Stub& health() { return *health_; }
  Gate& load_gate() { return load_gate_; }
  Gate& run_gate() { return run_gate_; }

  int grpc_port() const { return app_->grpc_port(); }
  int http_port() const { return app_->http_port(); }

  std::string Scrape() const { return app_->metrics().Scrape(); }
  // The metrics page's value of the series that starts with `series`; -1 when it is not there.
  double Metric(const std::string& series) const;
  // Until a metric is `value`.
  void AwaitMetric(const std::string& series, double value) const;
  // Calls until a metric is at least 1. Of calls that shall end at the server's deadline: one that
  // comes late to the server is cancelled by its client before.
  void CallUntilCounted(const std::string& series, const std::function<void()>& call) const;
  // Until the busiest connection of the gRPC port has so many calls that the server has begun.
  void AwaitOpenCalls(size_t calls) const;

 private:
  std::shared_ptr<grpc::Channel> NewChannel(grpc::ChannelArguments arguments) const;

  TempDirectory directory_;
  Gate load_gate_;
  Gate run_gate_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<App> app_;
  std::thread run_;
  absl::Status run_status_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Encoder::Stub> encoder_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

// A request for "tiny" with the text "hello world".
v1::EncodeRequest HelloRequest();

// Adds a sequence of these tokens; without a mask all count.
v1::Sequence& AddIds(v1::EncodeRequest& request, const std::vector<int32_t>& ids,
                     const std::vector<bool>& mask = {});

// One call, waiting at most 30 s.
grpc::Status CallEncode(v1::Encoder::Stub& stub, const v1::EncodeRequest& request,
                        v1::EncodeResponse& response);

// The status of such a call with HelloRequest; its answer is dropped.
grpc::Status CallHello(v1::Encoder::Stub& stub);

// A tensor's values; it must be f32.
std::vector<float> Floats(const v1::Tensor& tensor);

}  // namespace attendant
