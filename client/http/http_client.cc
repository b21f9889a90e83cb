// SPDX-License-Identifier: Apache-2.0
#include "client/http/http_client.h"

#include <openssl/ssl.h>
#include <pthread.h>

#include <array>
#include <cstddef>
#include <exception>
#include <set>
#include <thread>
// Boost 1.74 uses std::exchange without including <utility>.
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "absl/strings/str_cat.h"
#include "client/address/host_port.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Socket = Tcp::socket::lowest_layer_type;
using Addresses = Tcp::resolver::results_type;
using Parser = http::response_parser<http::string_body>;

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr int kMaxInterimAnswers = 16;  // before an answer
// The parser's own limits count neither the extension of a chunk nor trailers.
constexpr size_t kMaxUnparsedBytes = size_t{32} << 10;

// The bytes of a connection. Handlers of one type, whatever the stream, and a parser that is fed by
// hand: http::async_read and http::async_write for two streams took three times as long to compile.
class Stream {
 public:
  using Done = absl::AnyInvocable<void(const error_code&, size_t bytes)>;

  virtual ~Stream() = default;
  virtual Socket& socket() = 0;
  // REQUIRES: the socket is connected.
  virtual void Handshake(const std::string& host, Done done) = 0;
  virtual void Write(const std::array<asio::const_buffer, 2>& parts, Done done) = 0;
  virtual void Read(asio::mutable_buffer room, Done done) = 0;
};

template <typename Layer>
class LayerStream : public Stream {
 public:
  template <typename... Args>
  explicit LayerStream(Args&... args) : layer_(args...) {}

  Socket& socket() override { return layer_.lowest_layer(); }
  void Write(const std::array<asio::const_buffer, 2>& parts, Done done) override {
    asio::async_write(layer_, parts,
                      [done = std::move(done)](const error_code& error, size_t bytes) mutable {
                        done(error, bytes);
                      });
  }
  void Read(asio::mutable_buffer room, Done done) override {
    layer_.async_read_some(room,
                           [done = std::move(done)](const error_code& error, size_t bytes) mutable {
                             done(error, bytes);
                           });
  }

 protected:
  Layer layer_;
};

class PlainStream final : public LayerStream<Tcp::socket> {
 public:
  explicit PlainStream(asio::io_context& io) : LayerStream(io) {}
  void Handshake(const std::string&, Done done) override { done({}, 0); }
};

class TlsStream final : public LayerStream<ssl::stream<Tcp::socket>> {
 public:
  TlsStream(asio::io_context& io, ssl::context& tls) : LayerStream(io, tls) {}

  void Handshake(const std::string& host, Done done) override {
    error_code no_address;
    asio::ip::make_address(host, no_address);
    // An address must not be sent as a name (RFC 6066).
    if (no_address) SSL_set_tlsext_host_name(layer_.native_handle(), host.c_str());
    layer_.set_verify_mode(ssl::verify_peer);
    layer_.set_verify_callback(ssl::host_name_verification(host));
    layer_.async_handshake(
        ssl::stream_base::client,
        [done = std::move(done)](const error_code& error) mutable { done(error, 0); });
  }
};

struct Connection {
  std::unique_ptr<Stream> stream;
  beast::flat_buffer buffer;
};

struct Call {
  Call(asio::io_context& io, const HttpContent& call_content, HttpClient::Done call_done)
      : content(call_content), done(std::move(call_done)), timer(io) {}
  const HttpContent content;
  HttpClient::Done done;  // empty: the call has ended
  asio::steady_timer timer;
  std::string head = {};
  std::unique_ptr<Connection> connection = {};
  bool reused = false;                      // the server may have closed the connection meanwhile
  absl::Status stopped = absl::OkStatus();  // why the call is given up
  std::optional<Parser> parser = {};
  int interim_answers = 0, resent = 0;
};
using CallPtr = std::shared_ptr<Call>;

absl::StatusOr<std::unique_ptr<ssl::context>> MakeTls(
    const std::optional<std::string>& authorities) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  error_code error;
  context->set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, error);
  if (!authorities.has_value()) {
    context->set_default_verify_paths(error);
    return context;
  }
  context->add_certificate_authority(asio::buffer(*authorities), error);
  if (!error) return context;
  return absl::InvalidArgumentError(
      absl::StrCat("no PEM certificates of authorities (", error.message(), ")"));
}

// Feeds the parser with the bytes that have come, part by part: an eager parser of Boost 1.74 takes
// a body that is too long when it comes together with its head. It reserves the memory that
// Content-Length asks for, and throws where there is none.
error_code Parse(beast::flat_buffer& buffer, Parser& parser) {
  error_code error;
  try {
    while (!error && !parser.is_done() && buffer.size() > 0) {
      buffer.consume(parser.put(buffer.data(), error));
    }
  } catch (const std::exception&) {  // bad_alloc, length_error
    return http::error::body_limit;
  }
  if (error && error != http::error::need_more) return error;
  const bool too_long = !parser.is_done() && buffer.size() > kMaxUnparsedBytes;
  return too_long ? make_error_code(http::error::buffer_overflow) : error_code();
}

}  // namespace

// Everything but the constructor, the destructor, Send and CancelAll runs on its thread.
class HttpClient::Loop {
 public:
  Loop(HttpClientOptions options, HostPort address, std::unique_ptr<ssl::context> tls)
      : options_(std::move(options)),
        address_(std::move(address)),
        head_(HttpHead(options_)),
        tls_(std::move(tls)),
        work_(asio::make_work_guard(io_)),
        thread_([this] {
          pthread_setname_np(pthread_self(), "http-client");
          io_.run();
        }) {}

  ~Loop() {
    asio::post(io_, [this] {
      closing_ = true;
      CancelCalls();
    });
    work_.reset();
    thread_.join();
  }

  void Send(const HttpContent& content, absl::Duration timeout, Done done) {
    asio::post(io_, [this, timeout, call = std::make_shared<Call>(io_, content, std::move(done))] {
      calls_.insert(call);
      if (closing_) return Stop(call, absl::CancelledError("cancelled"));
      StartTimer(call, timeout);
      Begin(call);
    });
  }

  void CancelAll() {
    asio::post(io_, [this] { CancelCalls(); });
  }

 private:
  void CancelCalls() {
    const std::set<CallPtr> running = calls_;
    for (const CallPtr& call : running) Stop(call, absl::CancelledError("cancelled"));
  }

  void StartTimer(const CallPtr& call, absl::Duration timeout) {
    if (timeout == absl::InfiniteDuration()) return;
    call->timer.expires_after(absl::ToChronoNanoseconds(timeout));
    call->timer.async_wait([this, call](const error_code& error) {
      if (error || call->done == nullptr) return;
      Stop(call, absl::DeadlineExceededError(
                     absl::StrCat(options_.address, ": no answer within the timeout")));
    });
  }

  // Gives a call up. It ends when its operation has ended, which may use its buffers until then. A
  // call that waits for its host to be looked up has none, and ends at once.
  void Stop(const CallPtr& call, const absl::Status& why) {
    if (!call->stopped.ok()) return;
    call->stopped = why;
    if (call->connection == nullptr) return Finish(call, why);
    error_code ignored;
    call->connection->stream->socket().close(ignored);
  }

  void Begin(const CallPtr& call) {
    call->reused = !idle_.empty();
    if (call->reused) {
      call->connection = std::move(idle_.back());
      idle_.pop_back();
      return Write(call, 0);
    }
    if (!addresses_.empty()) return Connect(call, addresses_);
    const auto resolved = [this, call](const error_code& error, const Addresses& found) {
      if (call->done == nullptr) return;
      if (error) return Fail(call, error);
      if (options_.keep_alive) addresses_ = found;
      Connect(call, found);
    };
    try {  // the first one starts a thread
      resolver_.async_resolve(address_.host, address_.port, resolved);
    } catch (const std::exception&) {
      Fail(call, make_error_code(boost::system::errc::resource_unavailable_try_again));
    }
  }

  std::unique_ptr<Stream> MakeStream() {
    if (tls_ != nullptr) return std::make_unique<TlsStream>(io_, *tls_);
    return std::make_unique<PlainStream>(io_);
  }

  void Connect(const CallPtr& call, const Addresses& addresses) {
    call->connection = std::make_unique<Connection>();
    call->connection->stream = MakeStream();
    asio::async_connect(call->connection->stream->socket(), addresses,
                        [this, call](const error_code& error, const Tcp::endpoint&) {
                          if (error) {
                            addresses_ = Addresses();
                            return Fail(call, error);
                          }
                          Connected(call);
                        });
  }

  void Connected(const CallPtr& call) {
    Stream& stream = *call->connection->stream;
    error_code ignored;
    stream.socket().set_option(Tcp::no_delay(true), ignored);
    stream.Handshake(address_.host, Then(call, &Loop::Write));
  }

  void Write(const CallPtr& call, size_t) {
    call->parser.emplace().body_limit(options_.max_answer_bytes);
    const absl::string_view body = call->content.body;
    call->head =
        absl::StrCat(head_, call->content.headers, "Content-Length: ", body.size(), "\r\n\r\n");
    call->connection->stream->Write(
        {asio::buffer(call->head), asio::buffer(body.data(), body.size())},
        Then(call, &Loop::Read));
  }

  void Read(const CallPtr& call, size_t) {
    Connection& connection = *call->connection;
    connection.stream->Read(connection.buffer.prepare(kReadBytes),
                            [this, call](const error_code& error, size_t bytes) {
                              call->connection->buffer.commit(bytes);
                              OnRead(call, error);
                            });
  }

  void OnRead(const CallPtr& call, error_code error) {
    Parser& parser = *call->parser;
    if (!error) {
      error = Parse(call->connection->buffer, parser);
    } else if (error == asio::error::eof && parser.got_some()) {
      parser.put_eof(error);  // a body may end with its connection
    }
    if (error) return Fail(call, error);
    if (!parser.is_done()) return Read(call, 0);
    const unsigned code = parser.get().result_int();
    // Another answer follows "100 Continue" and its like, but 101.
    if (code >= 200 || code == 101) return Answer(call, absl::OkStatus());
    if (++call->interim_answers > kMaxInterimAnswers) {
      return Finish(call, absl::UnavailableError(
                              absl::StrCat(options_.address, ": too many interim answers")));
    }
    call->parser.emplace().body_limit(options_.max_answer_bytes);
    OnRead(call, {});
  }

  // A step of a call: the next one follows, unless this one failed.
  Stream::Done Then(const CallPtr& call, void (Loop::*next)(const CallPtr&, size_t)) {
    return [this, call, next](const error_code& error, size_t bytes) {
      if (error) return Fail(call, error);
      (this->*next)(call, bytes);
    };
  }

  void Fail(const CallPtr& call, const error_code& error) {
    const std::string reason =
        error == http::error::bad_version ? "what answers there is not HTTP/1.1" : error.message();
    absl::Status status = call->stopped;
    if (status.ok()) status = absl::UnavailableError(absl::StrCat(options_.address, ": ", reason));
    const bool has_begun = call->parser.has_value() && call->parser->got_some();
    if (has_begun && call->parser->is_header_done()) return Answer(call, status);
    if (call->reused && !has_begun && call->interim_answers == 0 && call->stopped.ok()) {
      idle_.clear();  // the others are as old
      call->connection = nullptr;
      ++call->resent;
      return Begin(call);
    }
    Finish(call, status);
  }

  void Answer(const CallPtr& call, const absl::Status& body_status) {
    // Bytes behind the answer belong to no request.
    const bool reusable = body_status.ok() && call->stopped.ok() && options_.keep_alive &&
                          call->parser->keep_alive() && call->connection->buffer.size() == 0;
    auto message = call->parser->release();
    HttpAnswer answer{.code = static_cast<int>(message.result_int()),
                      .body = std::move(message.body()),
                      .retry_after = std::string(message[http::field::retry_after]),
                      .resent = call->resent,
                      .body_status = body_status};
    if (reusable) idle_.push_back(std::move(call->connection));
    Finish(call, std::move(answer));
  }

  void Finish(const CallPtr& call, absl::StatusOr<HttpAnswer> result) {
    calls_.erase(call);
    call->timer.cancel();
    call->connection = nullptr;
    Done done = std::exchange(call->done, nullptr);
    done(std::move(result));
  }

  const HttpClientOptions options_;
  const HostPort address_;
  const std::string head_;
  const std::unique_ptr<ssl::context> tls_;  // null: without TLS
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Tcp::resolver resolver_{io_};
  Addresses addresses_;  // of the host, with keep_alive, until one cannot be reached
  std::vector<std::unique_ptr<Connection>> idle_;
  std::set<CallPtr> calls_;
  bool closing_ = false;
  std::thread thread_;  // last: it uses all of the above
};

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Make(HttpClientOptions options) {
  std::optional<HostPort> address = ParseHostPort(options.address);
  if (!address.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("'", options.address, "' is not HOST:PORT"));
  }
  std::unique_ptr<ssl::context> tls;
  if (options.tls) {
    ATTENDANT_ASSIGN_OR_RETURN(tls, MakeTls(options.authorities));
  }
  return std::unique_ptr<HttpClient>(new HttpClient(
      std::make_unique<Loop>(std::move(options), *std::move(address), std::move(tls))));
}

HttpClient::HttpClient(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpClient::~HttpClient() = default;

void HttpClient::Send(const HttpContent& content, absl::Duration timeout, Done done) {
  loop_->Send(content, timeout, std::move(done));
}

void HttpClient::CancelAll() { loop_->CancelAll(); }

}  // namespace attendant::client
