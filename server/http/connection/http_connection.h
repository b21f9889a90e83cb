// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/http/connection/tls_context.h"
#include "server/http/http_routes.h"
#include "server/http/http_types.h"
#include "server/metrics/server_metrics.h"
#include "server/net/listening_socket.h"
#include "server/requests/request_run.h"

namespace boost::asio {
class io_context;
}

namespace attendant {

// A connection of the HTTP port. On the loop's thread only.
//
//   waiting --first byte--> reading --head and body there--> answering --answer there--> writing
//      ^                                                                                    |
//      +------------------------------- the client may ask again ---------------------------+
//                                                                                           v
//                                                      gone <--peer closed-- closing <--else--
//
// A connection has one request at a time. Of the bytes behind it, the connection holds at most
// kBufferBytes, and the system the rest: pipelined requests wait for their turn.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  static constexpr size_t kMaxRequestHeadBytes = 16384;
  static constexpr size_t kMaxHeaders = 128;  // in a head
  static constexpr size_t kBufferBytes = 32768;
  static constexpr size_t kWriteBytes = 1 << 20;  // of an answer, that have their own time

  // The time that a client has for each step.
  struct Times {
    absl::Duration head = absl::Seconds(3);   // also TLS's handshake, before it
    absl::Duration idle = absl::Seconds(60);  // between requests
    absl::Duration body = absl::Seconds(30);  // also to go on sending what has its answer already
    absl::Duration page = absl::Seconds(10);  // to take an answer that no route has made
    absl::Duration close = absl::Seconds(1);  // to send more, or to close, after the last answer
  };

  // The state that the connections of one port share. Called on the loop's thread.
  class Host {
   public:
    virtual ~Host() = default;
    virtual bool HasPage(absl::string_view path) = 0;
    // The answer to GET or HEAD of a page, compressed for a client that takes gzip.
    // REQUIRES: HasPage.
    virtual HttpResponse Page(absl::string_view path, bool takes_gzip) = 0;
    virtual bool loopback() const = 0;  // only this machine can connect
    virtual const HttpRoutes& routes() const = 0;
    // The dependencies of routes. REQUIRES: there are routes.
    virtual const RequestDependencies& requests() const = 0;
    virtual int64_t max_request_bytes() const = 0;
    virtual const Times& times() const = 0;
    virtual absl::Duration max_write() const = 0;  // to take 1 MiB of a route's answer
    // A request of a route of `group` has come. UNAVAILABLE: the server stops; RESOURCE_EXHAUSTED:
    // there are too many; of those that are open to anybody there never are. When OK, Leave follows
    // once its answer is written or given up.
    virtual absl::Status Enter(MethodGroup group) = 0;
    virtual void Leave() = 0;
    // The request is handed over, and its exchange has ended. Ended comes from any thread.
    virtual void Started() = 0;
    virtual void Ended() = 0;
    virtual bool ends_connections() const = 0;  // each with the answer that is written
    virtual void Closed(const HttpConnection& connection, HttpEnd end) = 0;
  };

  enum class Phase {
    // No request of a route has been answered, and none is there; or the client has yet to take the
    // answer of a route that is open to anybody.
    kNew,
    kWaiting,  // for the next request of a route
    kSending,  // the client sends the body of such a request
    kInWork,   // such a request is in work: the others may give way to a new connection
  };

  virtual ~HttpConnection() = default;
  virtual void Start() = 0;
  // At once; cancels a request in work.
  virtual void Close(HttpEnd end) = 0;
  // The client sends nothing more: this cancels its request in work, and those behind it, which are
  // still unread, when their turn comes.
  virtual void PeerClosed() = 0;
  virtual Phase phase() const = 0;
  virtual absl::Time idle_since() const = 0;  // its start, or the end of its latest answer
};

// `fd` is a connected, non-blocking socket; `peer` names it as gRPC would. `host` must outlive the
// loop's last handler. With `tls` the connection begins with a handshake. Null: the system lacks
// memory.
std::shared_ptr<HttpConnection> MakeHttpConnection(std::shared_ptr<boost::asio::io_context> loop,
                                                   FileDescriptor fd, std::string peer,
                                                   HttpConnection::Host& host,
                                                   const TlsContext* tls);

}  // namespace attendant
