// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/caller.h"
#include "client/load/payload.h"
#include "client/types.h"

namespace attendant::client {

// The requests of a load, and the server that gets them.
struct TargetSpec {
  ConnectOptions connect;
  int64_t connections = 1;
  std::string model;          // empty: the only model of the server
  int64_t model_version = 0;  // attendant.v1 and KServe v2; 0: the server chooses
  PayloadSpec payload;
  // attendant.v1: ask for hidden states instead of pooled embeddings.
  bool hidden = false;
  // Protocols of gRPC: the requests of a connection go on one stream, not each as a call.
  bool streaming = false;
  // KServe v2: NAME:8,16 gives the -1 dimensions of an input, batch dimension left out.
  std::vector<std::string> shapes;
  // KServe v2 over HTTP: tensors as JSON instead of bytes behind it.
  bool json_tensors = false;
};

struct Target {
  std::string model;
  std::unique_ptr<Caller> caller;
  bool sends_words = false;  // in the place of random token ids
};

// Each asks the server about the model and makes the requests. Errors are those of the server, or
// FAILED_PRECONDITION if the spec does not fit the model or makes no connection. REQUIRES:
// spec.model is not empty, except for attendant.v1 and the protocols of text-embeddings-inference.
absl::StatusOr<Target> MakeAttendantTarget(const TargetSpec& spec);
absl::StatusOr<Target> MakeKserveTarget(const TargetSpec& spec);
// One text for each request: token ids become words, and of several recorded sequences the first
// is sent.
absl::StatusOr<Target> MakeTeiTarget(const TargetSpec& spec);

// Over HTTP/1.1 without TLS and traces; spec.connect.target is the HTTP port. Token ids become
// words where the protocol takes none. A reranker gets pairs: the texts of a request, each with the
// first text of the next request as the query.
absl::StatusOr<Target> MakeKserveHttpTarget(const TargetSpec& spec);  // .../infer
absl::StatusOr<Target> MakeTeiHttpTarget(const TargetSpec& spec);     // /embed
absl::StatusOr<Target> MakeTeiRerankTarget(const TargetSpec& spec);   // /rerank
// The server tells no limit of lengths.
absl::StatusOr<Target> MakeOpenAiTarget(const TargetSpec& spec);        // /v1/embeddings
absl::StatusOr<Target> MakeCohereTarget(const TargetSpec& spec);        // /v2/embed
absl::StatusOr<Target> MakeCohereRerankTarget(const TargetSpec& spec);  // /v2/rerank

}  // namespace attendant::client
