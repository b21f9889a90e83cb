// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/server.h>

namespace attendant {

// HTTP/2's goodbye to the clients of a server: their connections take no new calls, so clients
// connect anew, to another server where there is one. Calls in work go on. Not thread-safe.
class Goaway {
 public:
  Goaway() = default;
  // REQUIRES: a server that Send was called for has been shut down.
  ~Goaway();
  Goaway(const Goaway&) = delete;
  Goaway& operator=(const Goaway&) = delete;

  // At once. REQUIRES: it is the first call, and the server gets no more connections. gRPC 1.51
  // ends calls that arrive before their client has the GOAWAY with CANCELLED.
  void Send(grpc::Server& server);

 private:
  grpc_completion_queue* shutdown_ = nullptr;  // hears the end of the server
};

}  // namespace attendant
