// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/stream_caller.h"

#include <utility>

namespace attendant::client {

StreamCaller::StreamCaller(GrpcLoad load, absl::Duration timeout,
                           std::unique_ptr<const LoadClock> clock)
    : load_(std::move(load)),
      clock_(std::move(clock)),
      threads_(MakeCompletionThreads(load_.channels.size())) {
  const size_t num_threads = threads_.size();
  for (size_t i = 0; i < load_.channels.size(); ++i) {
    streams_.push_back(std::make_unique<RequestStream>(load_, load_.channels[i], timeout,
                                                       *threads_[i % num_threads], *clock_));
  }
  for (size_t first = 0; first < num_threads; ++first) {
    threads_[first]->Start([this, first, num_threads] {
      for (size_t i = first; i < streams_.size(); i += num_threads) streams_[i]->Tend();
    });
  }
}

StreamCaller::~StreamCaller() {
  for (const std::unique_ptr<RequestStream>& stream : streams_) stream->Close();
  threads_.clear();  // what their streams' last operations do is done
}

void StreamCaller::Start(int64_t index, int64_t connection, Done done) {
  RequestStream& stream = *streams_[static_cast<size_t>(connection) % streams_.size()];
  stream.Send(load_.requests[static_cast<size_t>(index) % load_.requests.size()], std::move(done));
}

void StreamCaller::CancelAll() {
  for (const std::unique_ptr<RequestStream>& stream : streams_) stream->Cancel();
}

}  // namespace attendant::client
