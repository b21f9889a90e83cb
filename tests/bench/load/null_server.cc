// SPDX-License-Identifier: Apache-2.0
// Answers every request at once with the same embeddings, and computes nothing: what a load
// generator costs then is its own. One model, "null", which takes texts: KServe v2 over gRPC and
// HTTP as perf_analyzer calls it, and attendant.v1, over gRPC also as streams. Prints its
// addresses, gRPC's first; ends with SIGTERM or SIGINT, and prints how many requests it has
// answered.
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/bench/load/null_http.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:0",
          "HOST:PORT of gRPC; port 0 is any free one, as HTTP always has");

namespace attendant::bench {
namespace {

constexpr const char* kModel = "null";
constexpr const char* kVersion = "1";
constexpr const char* kOutput = "sentence_embedding";
constexpr int kHidden = 384;
constexpr int kMaxBatch = 1024;

std::atomic<int64_t> num_answered = 0;

const std::string& Embedding() {
  static const std::string* const zeros = new std::string(kHidden * sizeof(float), '\0');
  return *zeros;
}

// Of `rows` sequences.
void AppendEmbeddings(int64_t rows, std::string& out) {
  for (int64_t row = 0; row < rows; ++row) out += Embedding();
}

// One answer after another, in the order of the requests.
template <typename Request, typename Response>
class AnswerStream final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  using Answer = void (*)(const Request&, Response&);

  explicit AnswerStream(Answer answer) : answer_(answer) { this->StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return this->Finish(grpc::Status::OK);
    response_.Clear();
    answer_(request_, response_);
    this->StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return this->Finish(grpc::Status::CANCELLED);
    this->StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  const Answer answer_;
  Request request_;
  Response response_;
};

grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

void AnswerInfer(const inference::ModelInferRequest& request,
                 inference::ModelInferResponse& response) {
  ++num_answered;
  response.set_model_name(kModel);
  response.set_model_version(kVersion);
  response.set_id(request.id());
  auto& output = *response.add_outputs();
  output.set_name(kOutput);
  output.set_datatype("FP32");
  const bool has_rows = request.inputs_size() > 0 && request.inputs(0).shape_size() > 0;
  const int64_t rows = has_rows ? std::clamp<int64_t>(request.inputs(0).shape(0), 0, kMaxBatch) : 1;
  output.add_shape(rows);
  output.add_shape(kHidden);
  AppendEmbeddings(rows, *response.add_raw_output_contents());
}

void AnswerStreamInfer(const inference::ModelInferRequest& request,
                       inference::ModelStreamInferResponse& response) {
  AnswerInfer(request, *response.mutable_infer_response());
}

void AnswerEncode(const v1::EncodeRequest& request, v1::EncodeResponse& response) {
  ++num_answered;
  response.set_id(request.id());
  response.set_model(kModel);
  const int rows = request.sequences().sequences_size();
  for (int row = 0; row < rows; ++row) response.add_sequences()->set_tokens(1);
  v1::Tensor& pooled = *response.mutable_pooled();
  pooled.set_dtype(v1::DTYPE_F32);
  pooled.add_shape(rows);
  pooled.add_shape(kHidden);
  AppendEmbeddings(rows, *pooled.mutable_data());
}

void AnswerEncodeStream(const v1::EncodeRequest& request, v1::EncodeStreamResponse& response) {
  response.set_id(request.id());
  AnswerEncode(request, *response.mutable_response());
}

void FillMetadata(inference::ModelMetadataResponse& response) {
  response.set_name(kModel);
  response.add_versions(std::string(kVersion));
  auto& input = *response.add_inputs();
  input.set_name("text");
  input.set_datatype("BYTES");
  input.add_shape(-1);
  input.add_shape(1);
  auto& output = *response.add_outputs();
  output.set_name(kOutput);
  output.set_datatype("FP32");
  output.add_shape(-1);
  output.add_shape(kHidden);
}

void FillConfig(inference::ModelConfig& config) {
  config.set_name(kModel);
  config.set_max_batch_size(kMaxBatch);
  auto& input = *config.add_input();
  input.set_name("text");
  input.set_data_type(inference::TYPE_STRING);
  input.add_dims(1);
  auto& output = *config.add_output();
  output.set_name(kOutput);
  output.set_data_type(inference::TYPE_FP32);
  output.add_dims(kHidden);
}

// As perf_analyzer itself writes what it gets over gRPC.
std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  return status.ok() ? json : status.ToString();
}

NullHttp::Answers HttpAnswers() {
  inference::ServerMetadataResponse server;
  server.set_name(kModel);
  inference::ModelMetadataResponse metadata;
  FillMetadata(metadata);
  inference::ModelConfig config;
  FillConfig(config);
  return {.pages = {{"/v2", ToJson(server)},
                    {"/v2/health/live", ""},
                    {"/v2/health/ready", ""},
                    {"/v2/models/null", ToJson(metadata)},
                    {"/v2/models/null/config", ToJson(config)},
                    {"/v2/models/null/ready", ""}},
          .model = kModel,
          .version = kVersion,
          .output = kOutput,
          .tensor = Embedding()};
}

class NullInference final : public inference::GRPCInferenceService::CallbackService {
  using Context = grpc::CallbackServerContext;

  grpc::ServerUnaryReactor* ServerMetadata(Context* context,
                                           const inference::ServerMetadataRequest*,
                                           inference::ServerMetadataResponse* response) override {
    response->set_name(kModel);
    return Finished(context);
  }

  grpc::ServerUnaryReactor* ModelReady(Context* context, const inference::ModelReadyRequest*,
                                       inference::ModelReadyResponse* response) override {
    response->set_ready(true);
    return Finished(context);
  }

  grpc::ServerUnaryReactor* ModelMetadata(Context* context, const inference::ModelMetadataRequest*,
                                          inference::ModelMetadataResponse* response) override {
    FillMetadata(*response);
    return Finished(context);
  }

  grpc::ServerUnaryReactor* ModelConfig(Context* context, const inference::ModelConfigRequest*,
                                        inference::ModelConfigResponse* response) override {
    FillConfig(*response->mutable_config());
    return Finished(context);
  }

  grpc::ServerUnaryReactor* ModelInfer(Context* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    AnswerInfer(*request, *response);
    return Finished(context);
  }

  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
  ModelStreamInfer(Context*) override {
    return new AnswerStream<inference::ModelInferRequest, inference::ModelStreamInferResponse>(
        AnswerStreamInfer);
  }
};

class NullEncoder final : public v1::Encoder::CallbackService {
  using Context = grpc::CallbackServerContext;

  grpc::ServerUnaryReactor* ListModels(Context* context, const v1::ListModelsRequest*,
                                       v1::ListModelsResponse* response) override {
    v1::ModelInfo& model = *response->add_models();
    model.set_name(kModel);
    model.set_state(v1::MODEL_STATE_READY);
    model.set_hidden(kHidden);
    model.set_vocab(30522);
    model.set_max_sequence_tokens(512);
    return Finished(context);
  }

  grpc::ServerUnaryReactor* Encode(Context* context, const v1::EncodeRequest* request,
                                   v1::EncodeResponse* response) override {
    AnswerEncode(*request, *response);
    return Finished(context);
  }

  grpc::ServerBidiReactor<v1::EncodeRequest, v1::EncodeStreamResponse>* EncodeStream(
      Context*) override {
    return new AnswerStream<v1::EncodeRequest, v1::EncodeStreamResponse>(AnswerEncodeStream);
  }
};

int Main() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before gRPC's threads, which take it over

  NullInference inference;
  NullEncoder encoder;
  grpc::ServerBuilder builder;
  const std::string listen = absl::GetFlag(FLAGS_listen);
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&inference);
  builder.RegisterService(&encoder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "null_server: cannot listen on %s\n", listen.c_str());
    return 1;
  }
  const std::string host = listen.substr(0, listen.rfind(':'));
  const NullHttp http(host, HttpAnswers(), num_answered);
  if (http.port() == 0) {
    std::fprintf(stderr, "null_server: cannot listen on %s for HTTP\n", host.c_str());
    return 1;
  }
  std::printf("%s:%d\n%s:%d\n", host.c_str(), port, host.c_str(), http.port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  server->Shutdown(std::chrono::system_clock::now());
  std::printf("%lld\n", static_cast<long long>(num_answered));
  return 0;
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Answers every request at once, and computes nothing.");
  absl::ParseCommandLine(argc, argv);
  return attendant::bench::Main();
}
