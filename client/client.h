// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/attention.h"
#include "client/connect_options.h"
#include "client/types.h"

// A client of an Attendant server.
//
//   using attendant::client::Client;
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = "127.0.0.1:8001"});
//   if (!client.ok()) return client.status();
//   absl::StatusOr<attendant::client::Tensor> embeddings =
//       (*client)->Embed({"A man is eating.", "Someone eats."});
//   // embeddings->shape is {2, 384}; embeddings->values holds 2 * 384 floats, row after row.
//
// Errors are the server's own status (its words are in attendant/v1/encoder.proto), UNAVAILABLE
// when the server cannot be reached, DEADLINE_EXCEEDED when ConnectOptions::timeout passed,
// INVALID_ARGUMENT for text that is not UTF-8 and INTERNAL for an answer that contradicts itself.
namespace attendant::client {

// Thread-safe. Calls that are still running when the client is destroyed are cancelled, and their
// callbacks have returned before the destructor does.
class Client {
 public:
  // Does not wait for the connection: an unreachable server shows at the first call. Fails when a
  // TLS file cannot be read.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ConnectOptions& options);
  ~Client();

  // Embeds any number of texts, in several requests when there are many. Returns [texts, dims].
  absl::StatusOr<Tensor> Embed(const std::vector<std::string>& texts,
                               const EmbedOptions& options = {});

  // One request.
  absl::StatusOr<EncodeResult> Encode(const EncodeRequest& request);

  // The same without waiting. `done` runs exactly once, on a gRPC thread or before EncodeAsync
  // returns; it must not block and must not destroy the client. REQUIRES: request.model is set.
  void EncodeAsync(const EncodeRequest& request,
                   absl::AnyInvocable<void(absl::StatusOr<EncodeResult>)> done);

  // Attention over tensors of one's own, or over a loaded module's weights.
  absl::StatusOr<AttendResult> Attend(const AttendRequest& request);
  // The kinds of attention, the loaded modules, and the limits.
  absl::StatusOr<AttentionOffer> ListAttention();

  absl::StatusOr<std::vector<ModelInfo>> Models();

  // The name of the only model the server has; FAILED_PRECONDITION, listing them, when there are
  // several, and NOT_FOUND when there is none. Asked once, then remembered.
  absl::StatusOr<std::string> OnlyModel();

  // Service "" is the whole server; a model's name is a service of its own. NOT_FOUND: no such
  // service.
  absl::StatusOr<ServingStatus> Health(absl::string_view service = "");

  // Calls `changed` with the status now and after every change, until it returns false (then OK) or
  // the connection ends (then why). Has no deadline.
  absl::Status WatchHealth(absl::string_view service,
                           const std::function<bool(ServingStatus)>& changed);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::client
