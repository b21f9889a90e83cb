// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/http_connection.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
// Boost 1.74 uses std::exchange without including <utility>.
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include "absl/time/clock.h"
#include "server/http/connection/dispatch.h"
#include "server/http/connection/http_message.h"
#include "server/http/connection/request_head.h"
#include "server/http/connection/route_call.h"
#include "server/http/connection/stream_errors.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

absl::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// Stream: a TCP stream, or TLS over one.
template <typename Stream>
class Connection final : public HttpConnection {
 public:
  template <typename... TlsContexts>
  Connection(std::shared_ptr<asio::io_context> loop, std::string peer, Host& host,
             tcp::socket socket, TlsContexts&... tls)
      : loop_(std::move(loop)),
        host_(host),
        peer_(std::move(peer)),
        stream_(std::move(socket), tls...),
        buffer_(kBufferBytes) {}

  void Start() override {
    if constexpr (kPlain) {
      ReadFirst();
    } else {
      Expire(times().head);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              Then([](Connection& c, const error_code& error) {
                                error ? c.Close(EndAfterHandshake(error)) : c.ReadFirst();
                              }));
    }
  }

  void Close(HttpEnd end) override {
    if (!open_) return;
    open_ = false;
    if (call_) {
      call_->state().Cancel();
      call_->GiveUp(end == HttpEnd::kSlowBody ? absl::StatusCode::kDeadlineExceeded
                                              : absl::StatusCode::kCancelled);
    }
    tcp_stream().close();
    LeaveRoute();
    host_.Closed(*this, end);
  }
  void PeerClosed() override {
    peer_closed_ = true;
    if (entered_) call_->state().Cancel();
  }
  Phase phase() const override {
    if (entered_) return IsSendingOpenAnswer() ? Phase::kNew : Phase::kInWork;
    if (call_) return Phase::kSending;
    return has_served_ ? Phase::kWaiting : Phase::kNew;
  }
  absl::Time idle_since() const override { return idle_since_; }

 private:
  using Parser = http::request_parser<http::buffer_body>;
  static constexpr bool kPlain = std::is_same_v<Stream, beast::tcp_stream>;
  static constexpr size_t kSomeBytes = 4096;  // that are read at once

  const Times& times() const { return host_.times(); }

  // A step that goes on only while the connection is open.
  template <typename Next>
  auto Then(Next next) {
    return [self = Self(), next = std::move(next)](const error_code& error, size_t = 0) {
      if (self->open_) next(*self, error);
    };
  }
  std::shared_ptr<Connection> Self() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }
  beast::tcp_stream& tcp_stream() { return beast::get_lowest_layer(stream_); }
  void Expire(absl::Duration time) { tcp_stream().expires_after(absl::ToChronoNanoseconds(time)); }

  // Anybody may ask for such answers, and may leave them unread.
  bool IsSendingOpenAnswer() const {
    return writing_ && call_->route().call.group == MethodGroup::kOpen;
  }

  // The next request of a connection that stays. What of it has come already is in the buffer.
  void AwaitRequest() {
    has_served_ = true;
    idle_since_ = SteadyNow();
    parser_.reset();
    if (buffer_.size() == 0) buffer_.shrink_to_fit();
    ReadFirst();
  }

  void ReadFirst() {
    Expire(has_served_ ? times().idle : times().head);
    SkipEmptyLines();
  }

  void SkipEmptyLines() {
    const auto bytes = [this] {
      return absl::string_view(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    };
    buffer_.consume(EmptyLineBytes(bytes()));
    if (!bytes().empty() && bytes() != "\r") return ReadHead();
    ReadSome(stream_, [](Connection& c, const error_code& error) {
      error ? c.Close(EndAfter(error, c.has_served_ ? HttpEnd::kIdle : HttpEnd::kSlowHead))
            : c.SkipEmptyLines();
    });
  }

  // REQUIRES: the buffer is not full.
  template <typename From, typename Next>
  void ReadSome(From& from, Next next) {
    const size_t bytes = std::min(kSomeBytes, buffer_.max_size() - buffer_.size());
    from.async_read_some(buffer_.prepare(bytes),
                         [self = Self(), next](const error_code& error, size_t read) {
                           if (!self->open_) return;
                           self->buffer_.commit(read);
                           next(*self, error);
                         });
  }

  void ReadHead() {
    parser_.emplace();
    parser_->header_limit(kMaxRequestHeadBytes);
    // A body has its limit when it is read. (boost::none refuses every body in Boost 1.74.)
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    Expire(times().head);
    http::async_read_header(stream_, buffer_, *parser_,
                            Then([](Connection& c, const error_code& error) { c.OnHead(error); }));
  }

  void OnHead(const error_code& error) {
    if (!error) return Dispatch();
    if (!IsParseError(error)) return Close(EndAfter(error, HttpEnd::kSlowHead));
    end_ = HttpEnd::kMalformed;
    const bool too_long =
        error == http::error::header_limit || error == http::error::buffer_overflow;
    Write(too_long ? HeadTooLong() : NotHttp(), false, times().page);
  }

  void Dispatch() {
    const auto& request = parser_->get();
    RequestHead head({.method = std::string(request.method_string()),
                      .target = std::string(request.target()),
                      .http_1_0 = request.version() < 11});
    // Beside these the parser puts trailers later, which may name anything.
    for (const auto& field : request) head.Add(View(field.name_string()), View(field.value()));
    Dispatched next = DispatchHead(host_, head);
    end_ = next.end;
    if (next.answer) return Write(*std::move(next.answer), false, times().page);
    StartRoute(std::move(next.match), std::move(head));
  }

  void StartRoute(HttpRoutes::Match match, RequestHead head) {
    call_.emplace(host_.requests(), std::move(match), std::move(head), peer_);
    if (auto refused = call_->RefuseHead(Length(), host_.max_request_bytes())) {
      return Write(*std::move(refused), false, times().page);
    }
    parser_->body_limit(static_cast<uint64_t>(host_.max_request_bytes()));
    Expire(times().body);
    if (call_->waits_for_continue()) return Continue100();
    ReadBody();
  }

  std::optional<uint64_t> Length() const {
    const auto length = parser_->content_length();
    return length ? std::optional<uint64_t>(*length) : std::nullopt;
  }

  void Continue100() {
    answer_head_ = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(answer_head_),
                      Then([](Connection& c, const error_code& error) {
                        error ? c.Close(EndAfter(error, HttpEnd::kSlowBody)) : c.ReadBody();
                      }));
  }

  void ReadBody() {
    if (parser_->is_done()) return HandOver();
    BodyBuffer& body = call_->body();
    const absl::Status room =
        body.MakeRoom(call_->state().memory(), Length(), host_.max_request_bytes());
    if (!room.ok()) return Refuse(FailureOf(room));
    auto& chunk = parser_->get().body();
    chunk.data = body.end();
    chunk.size = body.room();
    chunk.more = true;
    http::async_read_some(stream_, buffer_, *parser_,
                          Then([](Connection& c, const error_code& error) { c.OnBody(error); }));
  }

  void OnBody(const error_code& error) {
    if (error && error != http::error::need_buffer) return RefuseBody(error);
    call_->body().Received(call_->body().room() - parser_->get().body().size);
    ReadBody();
  }

  void RefuseBody(const error_code& error) {
    if (error == http::error::body_limit) return Refuse(BodyTooLong(host_.max_request_bytes()));
    if (!IsParseError(error)) return Close(EndAfter(error, HttpEnd::kSlowBody));
    Refuse({400, absl::InvalidArgumentError("the body's chunks are not valid HTTP")});
  }

  void Refuse(const HttpFailure& failure) { Write(call_->Refuse(failure), false, times().page); }

  void HandOver() {
    const absl::Status entered = host_.Enter(call_->route().call.group);
    if (!entered.ok()) return Refuse(FailureOf(entered));
    entered_ = true;
    tcp_stream().expires_never();
    if (peer_closed_) call_->state().Cancel();
    if constexpr (!kPlain) ReadAhead();
    std::unique_ptr<HttpExchange> exchange = call_->Take([self = Self()](HttpResponse response) {
      asio::post(self->stream_.get_executor(), [self, response = std::move(response)]() mutable {
        self->answer_ = std::move(response);
        self->WriteAnswer();
      });
      self->host_.Ended();
    });
    host_.Started();
    host_.requests().small_requests([exchange = std::move(exchange)]() mutable {
      const HttpRoute& route = exchange->route;
      route.handler(std::move(exchange));
    });
  }

  // Who reads on sees TLS's close_notify, which clients send before they wait for the server's, for
  // example Python's asyncio for 30 s. The next request goes into the buffer as far as it fits.
  void ReadAhead() {
    if (buffer_.size() == buffer_.max_size()) return;
    reading_ahead_ = true;
    ReadSome(stream_, [](Connection& c, const error_code& error) {
      c.reading_ahead_ = false;
      if (!c.answer_) error ? c.PeerClosed() : c.ReadAhead();
    });
  }

  // Not before the read ahead has ended: what is read next has a time limit. It is cancelled again
  // until then: a read that has bytes already goes on, in TLS until it has a whole record.
  void WriteAnswer() {
    if (!open_) return;
    if (reading_ahead_) {
      tcp_stream().cancel();
      return asio::post(stream_.get_executor(), [self = Self()] { self->WriteAnswer(); });
    }
    const bool keep_alive = parser_->keep_alive() && !host_.ends_connections();
    Write(*std::exchange(answer_, std::nullopt), keep_alive, host_.max_write());
  }

  void Write(HttpResponse response, bool keep_alive, absl::Duration time) {
    if (call_) AddCallHeaders(call_->state().call(), response);
    answer_head_ = HttpHeadOf(response, keep_alive, absl::Now());
    const bool head_only = parser_->get().method() == http::verb::head;
    answer_body_ = head_only ? std::string() : std::move(response.body);
    written_ = 0;
    writing_ = true;
    WritePart(keep_alive, time);
  }

  // The client has `time` for each part: what it reads steadily may take longer in all.
  void WritePart(bool keep_alive, absl::Duration time) {
    const size_t bytes = std::min(kWriteBytes, answer_body_.size() - written_);
    const std::array<asio::const_buffer, 2> parts = {
        asio::buffer(answer_head_), asio::buffer(answer_body_.data() + written_, bytes)};
    Expire(time);
    asio::async_write(stream_, parts,
                      Then([keep_alive, time, bytes](Connection& c, const error_code& error) {
                        c.written_ += bytes;
                        c.answer_head_.clear();
                        if (error || c.written_ == c.answer_body_.size()) {
                          return c.OnWritten(error, keep_alive);
                        }
                        c.WritePart(keep_alive, time);
                      }));
  }

  void OnWritten(const error_code& error, bool keep_alive) {
    if (error == beast::error::timeout && call_) {
      host_.requests().metrics.CountRefused(Refusal::kSlowReader);
      call_->state().call().connection.Count({.refused = 1});
    }
    answer_body_ = std::string();
    LeaveRoute();
    if (error) return Close(EndAfter(error, HttpEnd::kSlowReader));
    keep_alive ? AwaitRequest() : Linger();
  }

  // Gives back what the request and its answer held.
  void LeaveRoute() {
    call_.reset();
    writing_ = false;
    idle_since_ = SteadyNow();
    if (std::exchange(entered_, false)) host_.Leave();
  }

  // TLS says first that nothing follows: its client knows the answer for complete.
  void Linger() {
    linger_end_ = SteadyNow() + times().body;
    Expire(times().close);
    if constexpr (kPlain) {
      FinishSending();
    } else {
      stream_.async_shutdown(Then(
          [](Connection& c, const error_code& /*the client may say less*/) { c.FinishSending(); }));
    }
  }

  // Closing with unread input would reset the connection, and the client could lose the answer.
  // Many clients send a whole body before they read.
  void FinishSending() {
    error_code error;
    tcp_stream().socket().shutdown(tcp::socket::shutdown_send, error);
    if (error) return Close(end_);
    Discard();
  }

  void Discard() {
    buffer_.clear();
    Expire(std::min(times().close, linger_end_ - SteadyNow()));
    ReadSome(tcp_stream(),
             [](Connection& c, const error_code& error) { error ? c.Close(c.end_) : c.Discard(); });
  }

  const std::shared_ptr<asio::io_context> loop_;  // outlives the stream
  Host& host_;
  const std::string peer_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool open_ = true;
  HttpEnd end_ = HttpEnd::kNormal;  // where the client takes the last answer
  bool has_served_ = false;
  bool peer_closed_ = false;
  bool reading_ahead_ = false;
  absl::Time linger_end_;  // set when it lingers
  absl::Time idle_since_ = SteadyNow();

  std::optional<RouteCall> call_;       // of a route, until its answer is written
  bool entered_ = false;                // the host counts it
  std::optional<HttpResponse> answer_;  // that waits for the end of a read
  // Of the answer.
  bool writing_ = false;
  std::string answer_head_;
  std::string answer_body_;
  size_t written_ = 0;  // of the body
};

}  // namespace

std::shared_ptr<HttpConnection> MakeHttpConnection(std::shared_ptr<asio::io_context> loop,
                                                   FileDescriptor fd, std::string peer,
                                                   HttpConnection::Host& host,
                                                   const TlsContext* tls) {
  using TlsStream = asio::ssl::stream<beast::tcp_stream>;
  tcp::socket socket(*loop);
  error_code error;
  // Of a connected socket the protocol does not matter: no other address is made from it.
  socket.assign(tcp::v6(), fd.get(), error);
  if (error) return nullptr;
  fd.release();
  if (tls == nullptr) {
    return std::make_shared<Connection<beast::tcp_stream>>(std::move(loop), std::move(peer), host,
                                                           std::move(socket));
  }
  return std::make_shared<Connection<TlsStream>>(std::move(loop), std::move(peer), host,
                                                 std::move(socket), *tls->current());
}

}  // namespace attendant
