// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/caller.h"
#include "client/load/protocols/protocols.h"

namespace attendant::client {

// A request, serialized once and sent many times.
struct GrpcRequest {
  grpc::Slice message;
  int64_t sequences = 1;
  int64_t tokens = 0;  // 0: only the answer tells
};

template <typename Message>
GrpcRequest ToGrpcRequest(const Message& message, int64_t sequences, int64_t tokens = 0) {
  return {.message = grpc::Slice(message.SerializeAsString()),
          .sequences = sequences,
          .tokens = tokens};
}

struct GrpcAnswer {
  std::string id = {};                    // of the request; empty: the answer does not tell
  std::optional<int64_t> sequences = {};  // that the answer is about, where it tells
  CallResult result = {};                 // without `sequences`
};

// A method of a service.
struct GrpcMethod {
  std::string path;  // "/package.Service/Method"
  // Reads the bytes of an answer as ParseAnswer does. Runs on several threads at a time.
  std::function<bool(grpc::ByteBuffer& bytes, GrpcAnswer& answer)> read;
  // For a stream: the number of the string field with the request's id, which comes back in the
  // answer. 0: answers come in the order of the requests.
  int id_field = 0;
};

// The result of `request`: an answer leaves its size to the request. INTERNAL: the answer is about
// another number of sequences.
CallResult ResultOf(const GrpcRequest& request, GrpcAnswer answer);

// The requests of a gRPC protocol, and the channels for them. REQUIRES: neither channels nor
// requests is empty.
struct GrpcLoad {
  std::vector<std::shared_ptr<grpc::Channel>> channels;  // the connections
  std::vector<GrpcRequest> requests;
  GrpcMethod unary, stream;
  std::vector<std::pair<std::string, std::string>> metadata = {};  // of each call
};

// The field of a request that names spec.model_version; empty: the server chooses.
std::string VersionField(const TargetSpec& spec);

// The connections of the spec, as many as it says. FAILED_PRECONDITION where MakeChannel refuses.
absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> MakeChannels(const TargetSpec& spec);

// Sends the requests one by one or on streams, as the spec says.
std::unique_ptr<Caller> MakeGrpcCaller(const TargetSpec& spec, GrpcLoad load);

}  // namespace attendant::client
