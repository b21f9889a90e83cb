// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/encoder.pb.h"
#include "inference/grpc_service.pb.h"

namespace attendant::client {

// A server on a free port of 127.0.0.1 with one made-up model, "toy", of hidden size 4. A text of n
// bytes becomes n + 2 tokens, with ids 100, 101, ...; token t of a sequence has the hidden state
// [token id, t, 0, 1], and a sequence the embedding [tokens, 1, 0, 0], quantized [1, 0, 0, 0] with
// the scale `tokens`. KServe calls answer for "toy.ids", with inputs input_ids and attention_mask,
// batches of at most 8.
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  const std::string& address() const;

  // From now on. Several models make every name but "toy" one that is loading. A name that comes
  // again is a further version.
  void SetModels(std::vector<std::string> names);
  // ListModels answers these.
  void SetDescriptions(std::vector<v1::ModelInfo> models);
  // The models of this name are unloaded.
  void Unload(const std::string& name);
  // Attention modules of 2 heads; with none, which is at first, ListAttention is UNIMPLEMENTED.
  void SetModules(std::vector<std::string> names);
  // Every call fails, or the next `count` of Encode and of the changes of models do, after those
  // that were said before.
  void FailAll(absl::Status status);
  void FailNext(int count, const absl::Status& status);
  // Encode, ModelInfer and changes of models answer only when they are cancelled or too late.
  void Stall();
  void SetServing(bool serving);
  // Encode answers with the first `bytes` bytes of its tensors.
  void CutTensors(size_t bytes);
  // The models are idle, until the next Encode.
  void SetIdle();
  // Rows of each answer have one value more than those of the answer before.
  void WidenAnswers();
  // Encode answers without the last sequence of a request.
  void LoseASequence();
  // Answers of every call end in bytes that no message has; those of KServe's requests do not.
  void GarbleAnswers();
  // Encode compresses its answers by gzip, for clients that take it.
  void Compress();

  // Waits until so many calls of Encode have come since the start, or so many that stalled were
  // cancelled or too late. False: they did not within 20 seconds.
  bool AwaitEncodes(size_t count) const;
  bool AwaitCancelled(size_t count) const;

  std::vector<v1::EncodeRequest> encode_requests() const;
  std::vector<inference::ModelInferRequest> infer_requests() const;
  // The metadata of each Encode; a name that was sent twice has its first value.
  std::vector<std::map<std::string, std::string>> encode_metadata() const;
  std::vector<std::string> changes() const;  // of models: "load toy", "unload toy"
  size_t num_peers() const;                  // connections that Encode and ModelInfer came in on

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::client
