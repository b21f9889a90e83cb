// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/request_stream.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kLookForLate = absl::Milliseconds(20);
constexpr int kLengthDelimited = 2;  // wire type of protobuf

// A request with its id in field `id_field`, at its end: fields have no order.
grpc::ByteBuffer WithId(const GrpcRequest& request, int id_field, int64_t id) {
  if (id_field == 0) return grpc::ByteBuffer(&request.message, 1);
  const std::string digits = absl::StrCat(id);
  std::string field(1, static_cast<char>((id_field << 3) | kLengthDelimited));
  field.push_back(static_cast<char>(digits.size()));
  const grpc::Slice slices[] = {request.message, grpc::Slice(field + digits)};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace

struct RequestStream::Call {
  class Operation final : public CompletionThread::Tag {
   public:
    Operation(RequestStream& stream, void (RequestStream::*then)(bool))
        : stream_(stream), then_(then) {}
    void Complete(bool ok) override { (stream_.*then_)(ok); }

   private:
    RequestStream& stream_;
    void (RequestStream::*const then_)(bool);
  };

  explicit Call(RequestStream& stream)
      : starting(stream, &RequestStream::OnStarted),
        writing(stream, &RequestStream::OnWritten),
        reading(stream, &RequestStream::OnRead),
        ending(stream, &RequestStream::OnEnded) {}

  // Of its requests that have no answer.
  CallResult Result() const {
    if (!fault.empty()) return {.code = grpc::StatusCode::INTERNAL, .message = fault};
    if (status.ok()) {
      return {.code = grpc::StatusCode::UNAVAILABLE, .message = "the server ended the stream"};
    }
    return {.code = status.error_code(), .message = status.error_message()};
  }

  Operation starting, writing, reading, ending;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> rpc;
  grpc::ByteBuffer answer;  // of the read that is under way
  grpc::Status status;      // once it has ended
  std::string fault;
  bool is_open = false;  // takes requests
  bool is_writing = false;
  bool has_ended = false;
};

RequestStream::RequestStream(const GrpcLoad& load, std::shared_ptr<grpc::Channel> channel,
                             absl::Duration timeout, CompletionThread& thread,
                             const LoadClock& clock)
    : load_(load), stub_(std::move(channel)), timeout_(timeout), thread_(thread), clock_(clock) {}

RequestStream::~RequestStream() = default;

void RequestStream::Send(const GrpcRequest& request, Caller::Done done) {
  absl::MutexLock lock(&mutex_);
  const int64_t id = next_id_++;
  outstanding_.emplace_hint(
      outstanding_.end(), id,
      Outstanding{
          .request = &request, .done = std::move(done), .deadline = clock_.Now() + timeout_});
  unwritten_.emplace_back(id, &request);
  if (call_ == nullptr) return Open();
  if (!thread_.IsCurrent()) WriteNext();
}

void RequestStream::Tend() {
  if (const absl::Duration now = clock_.Now(); now >= next_look_) {
    next_look_ = now + kLookForLate;
    EndLate(now);
  }
  absl::MutexLock lock(&mutex_);
  WriteNext();
}

void RequestStream::Cancel() {
  absl::MutexLock lock(&mutex_);
  if (call_ != nullptr) call_->context.TryCancel();
}

void RequestStream::Close() {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
  if (call_ != nullptr) call_->context.TryCancel();
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return call_ == nullptr; };
  mutex_.Await(absl::Condition(&ended));
}

void RequestStream::Open() {
  call_ = std::make_unique<Call>(*this);
  for (const auto& [key, value] : load_.metadata) call_->context.AddMetadata(key, value);
  call_->rpc = stub_.PrepareCall(&call_->context, load_.stream.path, thread_.queue());
  if (closing_) call_->context.TryCancel();
  call_->rpc->StartCall(&call_->starting);
}

void RequestStream::Read() { call_->rpc->Read(&call_->answer, &call_->reading); }

void RequestStream::WriteNext() {
  if (call_ == nullptr || !call_->is_open || call_->is_writing || unwritten_.empty()) return;
  const auto [id, request] = unwritten_.front();
  unwritten_.pop_front();
  grpc::WriteOptions options;
  if (!unwritten_.empty()) options.set_buffer_hint();  // the last one sends them all
  call_->is_writing = true;
  call_->rpc->Write(WithId(*request, load_.stream.id_field, id), options, &call_->writing);
}

void RequestStream::OnStarted(bool ok) {
  absl::MutexLock lock(&mutex_);
  if (!ok) return Break("");
  call_->is_open = true;
  Read();
  WriteNext();
}

void RequestStream::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    call_->is_writing = false;
    if (ok) WriteNext();  // else the read fails too
  }
  EndCall();
}

void RequestStream::OnRead(bool ok) {
  grpc::ByteBuffer bytes;
  {
    absl::MutexLock lock(&mutex_);
    if (!ok) return Break("");
    bytes.Swap(&call_->answer);
  }
  GrpcAnswer answer;
  Outstanding answered;
  const bool readable = load_.stream.read(bytes, answer);
  {
    absl::MutexLock lock(&mutex_);
    if (!readable) return Break("the stream has a broken answer");
    if (!Take(answer.id, answered)) {
      return Break(absl::StrCat("the stream has an answer for no request: id '", answer.id, "'"));
    }
    Read();
  }
  if (answered.done == nullptr) return;
  answered.done(ResultOf(*answered.request, std::move(answer)));
}

bool RequestStream::Take(const std::string& id, Outstanding& taken) {
  auto found = outstanding_.begin();
  if (int64_t number = 0; !id.empty()) {
    if (!absl::SimpleAtoi(id, &number)) return false;
    found = outstanding_.find(number);
  }
  if (found == outstanding_.end()) return false;
  taken = std::move(found->second);
  outstanding_.erase(found);
  return true;
}

void RequestStream::Break(const std::string& fault) {
  call_->is_open = false;
  call_->fault = fault;
  if (!fault.empty()) call_->context.TryCancel();
  lost_.swap(outstanding_);
  unwritten_.clear();
  call_->rpc->Finish(&call_->status, &call_->ending);
}

void RequestStream::OnEnded(bool) {
  {
    absl::MutexLock lock(&mutex_);
    call_->has_ended = true;
  }
  EndCall();
}

void RequestStream::EndCall() {
  Requests lost;
  CallResult result;
  {
    absl::MutexLock lock(&mutex_);
    if (!call_->has_ended || call_->is_writing) return;
    result = call_->Result();
    lost.swap(lost_);
    call_.reset();
    if (!unwritten_.empty()) Open();
  }
  for (const auto& [id, request] : lost) {
    if (request.done != nullptr) request.done(result);
  }
}

void RequestStream::EndLate(absl::Duration now) {
  std::vector<Caller::Done> late;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [id, request] : outstanding_) {
      if (now < request.deadline) break;
      if (request.done != nullptr) late.push_back(std::exchange(request.done, nullptr));
    }
  }
  for (const Caller::Done& done : late) {
    done({.code = grpc::StatusCode::DEADLINE_EXCEEDED, .message = "no answer within the timeout"});
  }
}

}  // namespace attendant::client
