// SPDX-License-Identifier: Apache-2.0
#include "client/call_metadata.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

constexpr size_t kTraceIdDigits = 32;
constexpr size_t kMaxKeyBytes = 4096;

absl::Status CheckTraceId(const std::string& id) {
  const auto is_digit = [](unsigned char c) {
    return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
  };
  const bool valid = id.size() == kTraceIdDigits && std::all_of(id.begin(), id.end(), is_digit) &&
                     id.find_first_not_of('0') != std::string::npos;
  if (id.empty() || valid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the trace's id is '", id, "': it must be ",
                                                 kTraceIdDigits,
                                                 " lower-case hexadecimal digits, not all 0"));
}

// Adds the metadata of one call.
class AddMetadata final : public Interceptor {
 public:
  explicit AddMetadata(std::map<std::string, std::string> metadata)
      : metadata_(std::move(metadata)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->insert(metadata_.begin(), metadata_.end());
    }
    methods->Proceed();
  }

 private:
  const std::map<std::string, std::string> metadata_;
};

class Factory final : public ClientInterceptorFactoryInterface {
 public:
  Factory(std::string key, std::string trace_id)
      : key_(std::move(key)), trace_id_(std::move(trace_id)), random_(std::random_device()() | 1) {}

  Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo*) override {
    std::map<std::string, std::string> metadata;
    if (!key_.empty()) metadata["authorization"] = absl::StrCat("Bearer ", key_);
    if (!trace_id_.empty()) {
      const uint64_t call = calls_.fetch_add(1);
      const uint64_t span = uint64_t{random_} << 32 | (call & 0xffffffff);
      metadata["traceparent"] =
          absl::StrCat("00-", trace_id_, "-", absl::Hex(span, absl::kZeroPad16), "-01");
      metadata["x-request-id"] = absl::StrCat(absl::Hex(span, absl::kZeroPad16));
    }
    return new AddMetadata(std::move(metadata));
  }

 private:
  const std::string key_;
  const std::string trace_id_;
  const uint32_t random_;  // not 0: no span is
  std::atomic<uint64_t> calls_{0};
};

}  // namespace

absl::StatusOr<std::string> ReadApiKey(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read an API key from ", path, ": ", std::strerror(errno)));
  }
  std::string key;
  file >> std::setw(kMaxKeyBytes + 1) >> key;  // /dev/zero has no end
  if (file.bad()) {                            // a folder opens, and cannot be read
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read an API key from ", path, ": ", std::strerror(errno)));
  }
  if (key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read an API key from ", path,
                                                   ": it is longer than ", kMaxKeyBytes, " bytes"));
  }
  if (key.empty() || !std::all_of(key.begin(), key.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read an API key from ", path, ": it must be printable ASCII"));
  }
  return key;
}

absl::StatusOr<Interceptors> MakeInterceptors(const CallMetadata& metadata) {
  ATTENDANT_ASSIGN_OR_RETURN(std::string key, ReadApiKey(metadata.api_key_file));
  ATTENDANT_RETURN_IF_ERROR(CheckTraceId(metadata.trace_id));
  Interceptors interceptors;
  if (!key.empty() || !metadata.trace_id.empty()) {
    interceptors.push_back(std::make_unique<Factory>(std::move(key), metadata.trace_id));
  }
  return interceptors;
}

}  // namespace attendant::client
