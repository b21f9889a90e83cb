// SPDX-License-Identifier: Apache-2.0
#include "server/app/goaway.h"

#include <grpc/support/time.h>

namespace attendant {

Goaway::~Goaway() {
  if (shutdown_ == nullptr) return;
  grpc_completion_queue_shutdown(shutdown_);
  while (grpc_completion_queue_next(shutdown_, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr).type !=
         GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(shutdown_);
  grpc_shutdown();
}

// grpc::Server::Shutdown would wait for the calls. It may follow.
void Goaway::Send(grpc::Server& server) {
  grpc_init();  // the server, which holds gRPC too, ends before the queue
  shutdown_ = grpc_completion_queue_create_for_next(nullptr);
  grpc_server_shutdown_and_notify(server.c_server(), shutdown_, this);
}

}  // namespace attendant
