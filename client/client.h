// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/attention.h"
#include "client/types.h"

namespace attendant::client {

// A client of an Attendant server. types.h and attention.h hold the structs that it takes and
// gives.
//
//   using attendant::client::Client;
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = "127.0.0.1:8001"});
//   if (!client.ok()) return client.status();
//   absl::StatusOr<attendant::client::Tensor> embeddings =
//       (*client)->Embed({"A man is eating.", "Someone eats."});
//   // embeddings->shape is {2, 384}; embeddings->values holds 2 * 384 floats, row after row.
//
// Errors of every call:
//   the server's own status        attendant/v1/encoder.proto and attention.proto list the codes
//   UNAVAILABLE                    the server cannot be reached
//   DEADLINE_EXCEEDED              ConnectOptions::timeout passed
//   INVALID_ARGUMENT               a text or a name is not UTF-8, or a tensor does not fit; nothing
//                                  is sent
//   INTERNAL                       the answer is no message, or contradicts itself
//
// Thread-safe: any number of threads may call. All calls but EncodeAsync wait for their answer. The
// destructor cancels the calls of EncodeAsync that still run, and waits for their callbacks; a call
// that a callback starts then is cancelled too.
//
// A process that has made a client must not fork and go on in the child, where calls of gRPC 1.51
// never end: fork first, or start another program (exec) in the child.
class Client {
 public:
  // Does not wait for the connection: the first call finds out that a server cannot be reached.
  // INVALID_ARGUMENT if a TLS file or the API key cannot be read, a certificate comes without its
  // key, the trace's id is not one, the timeout is not above 0, max_attempts is not from 1 to 5, or
  // the target is empty, a URL or has a port beyond 65535 or below 0.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ConnectOptions& options);
  ~Client();

  // Embeds any number of texts; sends several requests for many. Returns [texts, dims]; kBinary and
  // kUbinary [texts, bytes]. kInt8 comes quantized and is scaled back here. INVALID_ARGUMENT: with
  // chunk_tokens, which Encode takes. An error cancels the requests that run.
  absl::StatusOr<Tensor> Embed(const std::vector<std::string>& texts,
                               const EmbedOptions& options = {});

  // Sends one request. With an empty request.model it asks OnlyModel first.
  absl::StatusOr<EncodeResult> Encode(const EncodeRequest& request);

  // Sends one request and returns. `done` runs exactly once, on a gRPC thread or before EncodeAsync
  // returns; it must not block and must not destroy the client. A stop of `stop` cancels the call:
  // `done` gets CANCELLED, unless the call has ended. REQUIRES: request.model is set.
  void EncodeAsync(const EncodeRequest& request,
                   absl::AnyInvocable<void(absl::StatusOr<EncodeResult>)> done,
                   std::stop_token stop = {});

  // Attention over the tensors of the request.
  absl::StatusOr<AttendResult> Attend(const AttendRequest& request);
  // The kinds of attention, the loaded modules, and the limits. UNIMPLEMENTED: the server has no
  // attention service.
  absl::StatusOr<AttentionOffer> ListAttention();

  // All models of the server, whatever their state.
  absl::StatusOr<std::vector<ModelInfo>> Models();

  // The version of a model that answers requests which name it and this version; 0: the highest
  // that serves, or else the highest. NOT_FOUND: the server has no such encoder or version.
  absl::StatusOr<ModelInfo> Describe(const std::string& name, int64_t version = 0);

  // The name of the server's only model, asked for once and then remembered until LoadModel or
  // UnloadModel. Models that were unloaded, or are being unloaded, do not count unless there is no
  // other. FAILED_PRECONDITION lists the models if there are several; NOT_FOUND if there is none.
  absl::StatusOr<std::string> OnlyModel();

  // Loads a model of the server's repository, or what changed in it since, and waits until it
  // serves. PERMISSION_DENIED: the server loads no models for clients, or not for this API key.
  // NOT_FOUND: the repository has no such model. DEADLINE_EXCEEDED: the server goes on with it. Any
  // other error: why it does not load; the model that served still does.
  absl::Status LoadModel(const std::string& name);
  // Unloads all versions of a model, and waits until its requests are answered. Errors as above;
  // NOT_FOUND: there is nothing of this name to unload.
  absl::Status UnloadModel(const std::string& name);

  // The health of the whole server (service ""), or of the model named `service`. NOT_FOUND: the
  // server has no such service. Waits no longer than `timeout`, nor than ConnectOptions::timeout.
  absl::StatusOr<ServingStatus> Health(absl::string_view service = "",
                                       absl::Duration timeout = absl::InfiniteDuration());

  // Calls `changed` on this thread with the status now and after every change. Returns OK once
  // `changed` returns false, and an error when the connection ends. Has no deadline.
  absl::Status WatchHealth(absl::string_view service,
                           const std::function<bool(ServingStatus)>& changed);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::client
