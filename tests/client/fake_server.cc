// SPDX-License-Identifier: Apache-2.0
#include "tests/client/fake_server.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "attendant/v1/attention.grpc.pb.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/client/fake_answer.h"

namespace attendant::client {
namespace {

using Reactor = grpc::ServerUnaryReactor;

constexpr absl::Duration kWait = absl::Seconds(20);

struct State {
  mutable absl::Mutex mutex;
  std::vector<std::string> models = {"toy"};
  std::vector<v1::ModelInfo> descriptions;  // in place of `models`, unless empty
  std::string unloaded;                     // the name of models
  std::vector<std::string> modules;
  absl::Status all = absl::OkStatus();
  std::deque<absl::Status> next;  // of the next calls that count
  bool stall = false;
  bool serving = true;
  size_t cut_bytes = std::string::npos;
  bool lose_a_sequence = false;
  bool compress = false;
  bool garble = false;
  bool idle = false;
  bool widen = false;
  int64_t width = kFakeHidden;  // of the rows of the next answer
  std::vector<v1::EncodeRequest> encode_requests;
  std::vector<std::map<std::string, std::string>> encode_metadata;
  std::vector<inference::ModelInferRequest> infer_requests;
  std::vector<std::string> changes;
  std::set<std::string> peers;
  size_t cancelled = 0;  // of the calls that stalled

  void Garble(google::protobuf::Message* answer) const {
    if (garble) answer->GetReflection()->MutableUnknownFields(answer)->AddVarint(0, 1);
  }

  grpc::Status Outcome(bool counted) {
    absl::Status status = all;
    if (counted && !next.empty()) {
      status = next.front();
      next.pop_front();
    }
    return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
  }
};

Reactor* Answer(grpc::CallbackServerContext& context, const grpc::Status& status) {
  auto* reactor = context.DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

// Waits for the caller to give up.
class StalledReactor : public Reactor {
 public:
  explicit StalledReactor(State& state) : state_(state) {}

  void OnCancel() override {
    {
      absl::MutexLock lock(&state_.mutex);
      ++state_.cancelled;
    }
    Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  State& state_;
};

class FakeEncoder : public v1::Encoder::CallbackService {
 public:
  explicit FakeEncoder(State& state) : state_(state) {}

  Reactor* Encode(grpc::CallbackServerContext* context, const v1::EncodeRequest* request,
                  v1::EncodeResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    state_.encode_requests.push_back(*request);
    auto& metadata = state_.encode_metadata.emplace_back();
    for (const auto& [name, value] : context->client_metadata()) {
      metadata.emplace(std::string(name.data(), name.size()),
                       std::string(value.data(), value.size()));
    }
    state_.peers.insert(context->peer());
    if (state_.stall) return new StalledReactor(state_);
    const grpc::Status status = state_.Outcome(true);
    v1::EncodeRequest answered = *request;
    if (state_.lose_a_sequence) answered.mutable_sequences()->mutable_sequences()->RemoveLast();
    if (status.ok()) FakeAnswer(answered, state_.cut_bytes, state_.width, response);
    state_.Garble(response);
    state_.width += state_.widen ? 1 : 0;
    state_.idle = false;
    if (state_.compress) context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    return Answer(*context, status);
  }

  Reactor* ListModels(grpc::CallbackServerContext* context, const v1::ListModelsRequest*,
                      v1::ListModelsResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    response->mutable_models()->Add(state_.descriptions.begin(), state_.descriptions.end());
    std::map<std::string, int64_t> versions;
    for (const std::string& name : state_.models) {
      if (!state_.descriptions.empty()) break;
      auto* model = response->add_models();
      model->set_name(name);
      model->set_version(++versions[name]);
      model->set_state(state_.idle ? v1::MODEL_STATE_IDLE : v1::MODEL_STATE_LOADING);
      if (name == state_.unloaded) model->set_state(v1::MODEL_STATE_UNLOADED);
      if (name != "toy" || state_.idle || name == state_.unloaded) continue;
      model->set_state(v1::MODEL_STATE_READY);
      model->set_backend("fake");
      model->set_layers(2);
      model->set_hidden(kFakeHidden);
      model->set_vocab(1000);
      model->set_max_sequence_tokens(64);
      model->set_pooling(v1::POOLING_MEAN);
      model->add_poolings(v1::POOLING_MEAN);
    }
    state_.Garble(response);
    return Answer(*context, state_.Outcome(false));
  }

 private:
  State& state_;
};

class FakeAttention : public v1::Attention::CallbackService {
 public:
  explicit FakeAttention(State& state) : state_(state) {}

  Reactor* ListAttention(grpc::CallbackServerContext* context, const v1::ListAttentionRequest*,
                         v1::ListAttentionResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    for (const std::string& name : state_.modules) {
      auto* module = response->add_modules();
      module->set_name(name);
      module->set_state(v1::MODEL_STATE_READY);
      module->set_type("multi_head");
      module->set_heads(2);
    }
    state_.Garble(response);
    return Answer(*context, state_.modules.empty()
                                ? grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "none")
                                : grpc::Status::OK);
  }

 private:
  State& state_;
};

class FakeInference : public inference::GRPCInferenceService::CallbackService {
 public:
  explicit FakeInference(State& state) : state_(state) {}

  Reactor* ModelMetadata(grpc::CallbackServerContext* context,
                         const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override {
    response->set_name(request->name());
    for (const char* name : {"input_ids", "attention_mask"}) {
      auto* input = response->add_inputs();
      input->set_name(name);
      input->set_datatype("INT64");
      input->add_shape(-1);
      input->add_shape(-1);
    }
    return Answer(*context, request->name() == "toy.ids"
                                ? grpc::Status::OK
                                : grpc::Status(grpc::StatusCode::NOT_FOUND, "no such model"));
  }

  Reactor* ModelConfig(grpc::CallbackServerContext* context, const inference::ModelConfigRequest*,
                       inference::ModelConfigResponse* response) override {
    response->mutable_config()->set_max_batch_size(8);
    return Answer(*context, grpc::Status::OK);
  }

  Reactor* ModelInfer(grpc::CallbackServerContext* context,
                      const inference::ModelInferRequest* request,
                      inference::ModelInferResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    state_.infer_requests.push_back(*request);
    state_.peers.insert(context->peer());
    if (state_.stall) return new StalledReactor(state_);
    response->add_outputs()->add_shape(request->inputs(0).shape(0));
    return Answer(*context, state_.Outcome(true));
  }

  Reactor* RepositoryModelLoad(grpc::CallbackServerContext* context,
                               const inference::RepositoryModelLoadRequest* request,
                               inference::RepositoryModelLoadResponse* response) override {
    return Change(*context, absl::StrCat("load ", request->model_name()), response);
  }
  Reactor* RepositoryModelUnload(grpc::CallbackServerContext* context,
                                 const inference::RepositoryModelUnloadRequest* request,
                                 inference::RepositoryModelUnloadResponse* response) override {
    return Change(*context, absl::StrCat("unload ", request->model_name()), response);
  }

 private:
  Reactor* Change(grpc::CallbackServerContext& context, const std::string& change,
                  google::protobuf::Message* response) {
    absl::MutexLock lock(&state_.mutex);
    state_.changes.push_back(change);
    state_.Garble(response);
    if (state_.stall) return new StalledReactor(state_);
    return Answer(context, state_.Outcome(true));
  }

  State& state_;
};

class FakeHealth : public grpc::health::v1::Health::Service {
 public:
  explicit FakeHealth(State& state) : state_(state) {}

  grpc::Status Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    if (!request->service().empty() && request->service() != "toy") {
      return {grpc::StatusCode::NOT_FOUND, "no such service"};
    }
    response->set_status(state_.serving ? grpc::health::v1::HealthCheckResponse::SERVING
                                        : grpc::health::v1::HealthCheckResponse::NOT_SERVING);
    state_.Garble(response);
    return grpc::Status::OK;
  }

  // Says the status once, then ends.
  grpc::Status Watch(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) override {
    grpc::health::v1::HealthCheckResponse response;
    if (const grpc::Status status = Check(context, request, &response); !status.ok()) {
      response.set_status(grpc::health::v1::HealthCheckResponse::SERVICE_UNKNOWN);
    }
    writer->Write(response);
    return {grpc::StatusCode::UNAVAILABLE, "the watch ends here"};
  }

 private:
  State& state_;
};

}  // namespace

struct FakeServer::Impl {
  State state;
  FakeEncoder encoder{state};
  FakeAttention attention{state};
  FakeInference inference{state};
  FakeHealth health{state};
  std::unique_ptr<grpc::Server> server;
  std::string address;
};

FakeServer::FakeServer() : impl_(std::make_unique<Impl>()) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&impl_->encoder);
  builder.RegisterService(&impl_->attention);
  builder.RegisterService(&impl_->inference);
  builder.RegisterService(&impl_->health);
  impl_->server = builder.BuildAndStart();
  impl_->address = absl::StrCat("127.0.0.1:", port);
}

FakeServer::~FakeServer() { impl_->server->Shutdown(std::chrono::system_clock::now()); }

const std::string& FakeServer::address() const { return impl_->address; }

void FakeServer::SetModels(std::vector<std::string> names) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.models = std::move(names);
}

void FakeServer::SetDescriptions(std::vector<v1::ModelInfo> models) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.descriptions = std::move(models);
}

void FakeServer::Unload(const std::string& name) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.unloaded = name;
}

void FakeServer::SetModules(std::vector<std::string> names) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.modules = std::move(names);
}

void FakeServer::FailAll(absl::Status status) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.all = std::move(status);
}

void FakeServer::FailNext(int count, const absl::Status& status) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.next.insert(impl_->state.next.end(), static_cast<size_t>(count), status);
}

void FakeServer::Stall() {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.stall = true;
}

void FakeServer::SetServing(bool serving) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.serving = serving;
}

void FakeServer::LoseASequence() {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.lose_a_sequence = true;
}

void FakeServer::GarbleAnswers() {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.garble = true;
}

void FakeServer::Compress() {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.compress = true;
}

void FakeServer::SetIdle() {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.idle = true;
}

void FakeServer::WidenAnswers() {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.widen = true;
}

void FakeServer::CutTensors(size_t bytes) {
  absl::MutexLock lock(&impl_->state.mutex);
  impl_->state.cut_bytes = bytes;
}

bool FakeServer::AwaitEncodes(size_t count) const {
  absl::MutexLock lock(&impl_->state.mutex);
  const auto came = [&] { return impl_->state.encode_requests.size() >= count; };
  return impl_->state.mutex.AwaitWithTimeout(absl::Condition(&came), kWait);
}

bool FakeServer::AwaitCancelled(size_t count) const {
  absl::MutexLock lock(&impl_->state.mutex);
  const auto were = [&] { return impl_->state.cancelled >= count; };
  return impl_->state.mutex.AwaitWithTimeout(absl::Condition(&were), kWait);
}

std::vector<v1::EncodeRequest> FakeServer::encode_requests() const {
  absl::MutexLock lock(&impl_->state.mutex);
  return impl_->state.encode_requests;
}

std::vector<std::map<std::string, std::string>> FakeServer::encode_metadata() const {
  absl::MutexLock lock(&impl_->state.mutex);
  return impl_->state.encode_metadata;
}

std::vector<inference::ModelInferRequest> FakeServer::infer_requests() const {
  absl::MutexLock lock(&impl_->state.mutex);
  return impl_->state.infer_requests;
}

std::vector<std::string> FakeServer::changes() const {
  absl::MutexLock lock(&impl_->state.mutex);
  return impl_->state.changes;
}

size_t FakeServer::num_peers() const {
  absl::MutexLock lock(&impl_->state.mutex);
  return impl_->state.peers.size();
}

}  // namespace attendant::client
