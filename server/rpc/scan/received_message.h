// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/protocols/typed_message.h"
#include "server/rpc/scan/wire_scan.h"
#include "server/rpc/scan/wire_schema.h"

namespace attendant {

// ScanWire on a buffer as gRPC received it.
inline absl::Status ScanBuffer(const WireSchema& schema, grpc::ByteBuffer& bytes,
                               WireSummary& summary) {
  grpc::ProtoBufferReader reader(&bytes);
  return ScanWire(schema, static_cast<int64_t>(bytes.Length()), reader, summary);
}

// Parses bytes that ScanBuffer has let pass.
template <typename M>
absl::Status ParseBuffer(grpc::ByteBuffer& bytes, M& message) {
  grpc::ProtoBufferReader reader(&bytes);
  if (message.ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a message of type ", message.GetTypeName(),
                                                 ": a string is not UTF-8, or a number too long"));
}

// A message that gRPC received, parsed into an arena.
template <typename M>
class ReceivedMessage final : public TypedMessage<M> {
 public:
  // Takes the bytes. `schema` must outlive the message. `model` is that of a message which cannot
  // name one.
  ReceivedMessage(grpc::ByteBuffer& bytes, const WireSchema& schema, std::string model = "")
      : schema_(schema) {
    bytes_.Swap(&bytes);
    summary_.model = std::move(model);
  }

  int64_t bytes() const override { return static_cast<int64_t>(bytes_.Length()); }
  absl::StatusOr<int64_t> Scan() override {
    const absl::Status status = ScanBuffer(schema_, bytes_, summary_);
    if (!status.ok()) return status;
    return summary_.memory_bytes;
  }
  absl::Status Parse() override {
    message_ = google::protobuf::Arena::CreateMessage<M>(&arena_);
    const absl::Status status = ParseBuffer(bytes_, *message_);
    bytes_.Clear();
    return status;
  }
  const std::string& id() const override { return summary_.id; }
  const std::string& model() const override { return summary_.model; }

  const M& message() const override { return *message_; }

 private:
  static google::protobuf::ArenaOptions Options() {
    google::protobuf::ArenaOptions options;
    options.start_block_size = size_t{1} << 10;
    options.max_block_size = size_t{64} << 10;
    return options;
  }

  const WireSchema& schema_;
  grpc::ByteBuffer bytes_;
  WireSummary summary_;
  google::protobuf::Arena arena_{Options()};
  M* message_ = nullptr;  // in arena_
};

}  // namespace attendant
