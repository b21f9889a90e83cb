// SPDX-License-Identifier: Apache-2.0
#include "client/channel.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/call_metadata.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

// Requests up to this size can be sent again.
constexpr int kRetryBufferBytes = 4 << 20;
constexpr int64_t kLastPort = 65535;
constexpr int kMostAttempts = 5;  // that gRPC makes; of a higher number it would only log
// The authorities of a system are 200 KiB.
constexpr size_t kMaxPemBytes = size_t{16} << 20;
// After a connection failed. gRPC's own longest wait is two minutes: so long a server that is back
// could get no call.
constexpr int kFirstReconnectMs = 100;
constexpr int kLongestReconnectMs = 5000;
// A time point of the system's clock holds 292 years; what is longer than this has no end.
constexpr absl::Duration kLongestTimeout = absl::Hours(24 * 365 * 100);

// A file with a block of PEM whose label ends with `kind`. gRPC itself would say nothing, or of a
// key in place of a certificate that there is no address.
absl::StatusOr<std::string> ReadPem(const std::string& path, absl::string_view kind) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string contents;
  std::array<char, 65536> part;
  do {  // /dev/zero has no end
    file.read(part.data(), part.size());
    contents.append(part.data(), static_cast<size_t>(file.gcount()));
  } while (file && contents.size() <= kMaxPemBytes);
  if (contents.empty() || file.bad()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read the PEM file ", path));
  }
  if (contents.size() > kMaxPemBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the PEM file ", path, " has more than ", kMaxPemBytes, " bytes"));
  }
  if (!absl::StrContains(contents, absl::StrCat(kind, "-----"))) {
    return absl::InvalidArgumentError(
        absl::StrCat("the PEM file ", path, " has no ", absl::AsciiStrToLower(kind)));
  }
  return contents;
}

// Keeps gRPC running until the process ends. When its last user is gone, gRPC 1.51 waits for its
// poller, which may sleep for ten seconds: a program would hang after its last answer.
void KeepGrpcRunning() {
  static absl::once_flag once;
  absl::call_once(once, grpc_init);
}

// True if `port` begins with a number that no port has. gRPC reads it with atoi, and leaves out
// what follows the number.
bool IsBeyondPorts(absl::string_view port) {
  const bool below = absl::ConsumePrefix(&port, "-");
  if (!below) absl::ConsumePrefix(&port, "+");
  const absl::string_view digits = port.substr(0, port.find_first_not_of("0123456789"));
  int64_t number = 0;
  const bool is_read = absl::SimpleAtoi(digits, &number);
  return !digits.empty() && (!is_read || number > kLastPort || (below && number > 0));
}

// The first port of a target that is none, or empty. gRPC would take its low 16 bits: another
// server could answer. A target may have several addresses, as ipv4:A:8001,B:8001.
absl::string_view FindWrongPort(absl::string_view target) {
  if (absl::StartsWith(target, "unix:") || absl::StartsWith(target, "unix-abstract:")) return {};
  for (const absl::string_view address : absl::StrSplit(target, ',')) {
    const size_t colon = address.rfind(':');
    if (colon == absl::string_view::npos) continue;
    const absl::string_view port = absl::StripLeadingAsciiWhitespace(address.substr(colon + 1));
    if (IsBeyondPorts(port)) return port;
  }
  return {};
}

// Of an empty target gRPC makes no channel. Of a URL it would look for a host of that name, and say
// that there is no address.
absl::Status CheckTarget(absl::string_view target) {
  if (target.empty()) {
    return absl::InvalidArgumentError("the target is empty: give HOST:PORT of the server");
  }
  if (const absl::string_view port = FindWrongPort(target); !port.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the target ", target, " has a port ",
                     port.front() == '-' ? "below 0" : absl::StrCat("above ", kLastPort)));
  }
  if (!absl::StartsWith(target, "http://") && !absl::StartsWith(target, "https://")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the target ", target,
                   " is a URL: give HOST:PORT of the server's gRPC port, not of its HTTP port"));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const TlsOptions& tls) {
  if (!tls.encrypts()) return grpc::InsecureChannelCredentials();
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError("a TLS certificate and its key must be given together");
  }
  grpc::SslCredentialsOptions ssl;
  ATTENDANT_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem(tls.ca_file, "CERTIFICATE"));
  ATTENDANT_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadPem(tls.cert_file, "CERTIFICATE"));
  ATTENDANT_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadPem(tls.key_file, "PRIVATE KEY"));
  return grpc::SslCredentials(ssl);
}

// A proxy from the environment cannot reach this machine's own loopback.
bool IsLoopback(absl::string_view target) {
  return absl::StartsWith(target, "127.") || absl::StartsWith(target, "localhost:") ||
         absl::StartsWith(target, "[::1]") || absl::StartsWith(target, "unix:");
}

std::string RetryConfig(int max_attempts) {
  return absl::StrCat(R"({"methodConfig": [{"name": [{"service": "attendant.v1.Encoder"},
      {"service": "attendant.v1.Attention"}],
      "retryPolicy": {"initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"], "maxAttempts": )",
                      max_attempts, "}}]}");
}

grpc::ChannelArguments MakeArguments(const ConnectOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  // Both are unused here, and take time at each call.
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  // A MiB of a compressed answer could become a GiB.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  if (IsLoopback(options.target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.round_robin) arguments.SetLoadBalancingPolicyName("round_robin");
  if (options.max_attempts > 1) {
    arguments.SetServiceConfigJSON(RetryConfig(options.max_attempts));
    arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, kRetryBufferBytes);
  } else {
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  }
  return arguments;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ConnectOptions& options) {
  ATTENDANT_RETURN_IF_ERROR(CheckTarget(options.target));
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the timeout is ", absl::FormatDuration(options.timeout), ": it must be above 0"));
  }
  if (options.max_attempts < 1 || options.max_attempts > kMostAttempts) {
    return absl::InvalidArgumentError(absl::StrCat("max_attempts is ", options.max_attempts,
                                                   ": it must be from 1 to ", kMostAttempts));
  }
  KeepGrpcRunning();
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                             MakeCredentials(options.tls));
  ATTENDANT_ASSIGN_OR_RETURN(
      Interceptors interceptors,
      MakeInterceptors({.api_key_file = options.api_key_file, .trace_id = options.trace_id}));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      options.target, credentials, MakeArguments(options), std::move(interceptors));
}

absl::Status ToAbslStatus(const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  // The server's gRPC refuses the message before the server sees it, and names no flag.
  if (absl::StartsWith(status.error_message(), "Received message larger than max")) {
    return absl::Status(code, absl::StrCat("the request is larger than the server's "
                                           "--max_request_bytes: ",
                                           status.error_message()));
  }
  return absl::Status(code, status.error_message());
}

void SetTimeout(absl::Duration timeout, grpc::ClientContext& context) {
  if (timeout > kLongestTimeout) return;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
}

void OutstandingCalls::Add(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  contexts_.insert(context);
  if (ended_) context->TryCancel();
}

void OutstandingCalls::End(grpc::ClientContext* context, absl::FunctionRef<void()> destroy) {
  {
    absl::MutexLock lock(&mutex_);
    contexts_.erase(context);
    ++ending_;
  }
  destroy();
  absl::MutexLock lock(&mutex_);
  --ending_;
}

void OutstandingCalls::Cancel() {
  absl::MutexLock lock(&mutex_);
  CancelAll();
}

void OutstandingCalls::CancelAll() {
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
}

void OutstandingCalls::CancelAndWait() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  CancelAll();
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return contexts_.empty() && ending_ == 0;
  };
  mutex_.Await(absl::Condition(&idle));
}

}  // namespace attendant::client
