// SPDX-License-Identifier: Apache-2.0
#include "server/http/kserve/routes.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/http/kserve/infer.h"
#include "server/http/proto_json/proto_writer.h"
#include "server/protocols/kserve/models.h"

namespace attendant {
namespace {

constexpr char kAnyObject[] = R"({"type":"object"})";
constexpr char kInferRequest[] = R"({"type":"object","required":["inputs"],"properties":{
"id":{"type":"string"},"parameters":{"type":"object"},
"inputs":{"type":"array","items":{"type":"object","required":["name","datatype","shape"],
"properties":{"name":{"type":"string"},"datatype":{"enum":["BYTES","INT64","INT32"]},
"shape":{"type":"array","items":{"type":"integer"}},"parameters":{"type":"object"},
"data":{"type":"array"}}}},
"outputs":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},
"parameters":{"type":"object"}}}}}})";
constexpr char kInferResponse[] = R"({"type":"object","properties":{
"model_name":{"type":"string"},"model_version":{"type":"string"},"id":{"type":"string"},
"outputs":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},
"datatype":{"enum":["FP32","INT32"]},"shape":{"type":"array","items":{"type":"integer"}},
"parameters":{"type":"object"},"data":{"type":"array","items":{"type":"number"}}}}}}})";

// Makes the routes of the protocol. All of a model's exist with and without a version.
class RouteMaker {
 public:
  explicit RouteMaker(const DoorDependencies& dependencies)
      : dependencies_(dependencies),
        models_(std::make_shared<KServeModels>(dependencies.encode.requests.models,
                                               dependencies.encode.limits.max_request_sequences)) {}

  std::vector<HttpRoute> Make() {
    AddServer();
    AddModels();
    AddInference();
    return std::move(routes_);
  }

 private:
  using Models = std::shared_ptr<const KServeModels>;
  // Fills the response for a model and version.
  using Fill = std::function<absl::Status(const KServeModels& models, const std::string& model,
                                          const std::string& version, std::string& json)>;

  // `schema` of the answer; empty: it has no body.
  void AddSmall(std::string path, MethodGroup group, std::string summary, std::string schema,
                SmallHandler handler) {
    routes_.push_back(MakeHttpRoute("GET", std::move(path), group, KServeError,
                                    Small(dependencies_, std::move(handler)),
                                    {std::move(summary), "", std::move(schema)}));
  }

  void AddServer() {
    const ModelRegistry& registry = dependencies_.encode.requests.models;
    AddSmall("/v2/health/live", MethodGroup::kOpen, "KServe: the process lives", "",
             [&registry](const HttpExchange&, std::string&) { return registry.Live(); });
    AddSmall("/v2/health/ready", MethodGroup::kOpen, "KServe: the server is ready", "",
             [&registry](const HttpExchange&, std::string&) { return registry.Ready(); });
    AddSmall("/v2", MethodGroup::kRead, "KServe: what the server is", kAnyObject,
             [version = dependencies_.version](const HttpExchange&, std::string& json) {
               inference::ServerMetadataResponse metadata;
               FillServerMetadata(version, metadata);
               AppendProtoJson(metadata, json);
               return absl::OkStatus();
             });
    AddSmall("/v2/models/stats", MethodGroup::kRead, "KServe: statistics of all models", kAnyObject,
             [models = Models(models_)](const HttpExchange&, std::string& json) {
               return AppendStatistics(*models, "", "", json);
             });
  }

  static absl::Status AppendStatistics(const KServeModels& models, const std::string& model,
                                       const std::string& version, std::string& json) {
    inference::ModelStatisticsResponse statistics;
    ATTENDANT_RETURN_IF_ERROR(models.FillStatistics(model, version, statistics));
    AppendProtoJson(statistics, json);
    return absl::OkStatus();
  }

  template <typename Answer>
  static absl::Status AppendInfo(const KServeModels& models, const std::string& model,
                                 const std::string& version, std::string& json) {
    ATTENDANT_ASSIGN_OR_RETURN(const KServeModelInfo info, models.Describe(model, version));
    Answer answer;
    ToProto(info, answer);
    AppendProtoJson(answer, json);
    return absl::OkStatus();
  }

  void AddModel(const std::string& path, MethodGroup group, const std::string& summary,
                const char* schema, Fill fill) {
    for (const char* version : {"", "/versions/{version}"}) {
      AddSmall(absl::StrCat("/v2/models/{model}", version, path), group, summary, schema,
               [models = Models(models_), fill](const HttpExchange& exchange, std::string& json) {
                 return fill(*models, exchange.parameters[0], VersionOf(exchange), json);
               });
    }
  }

  void AddModels() {
    // Clients ask this in a loop while they wait.
    AddModel("/ready", MethodGroup::kOpen, "KServe: the model is ready", "",
             [](const KServeModels& models, const std::string& model, const std::string& version,
                std::string&) { return models.Describe(model, version).status(); });
    AddModel("", MethodGroup::kRead, "KServe: the model's tensors", kAnyObject,
             AppendInfo<inference::ModelMetadataResponse>);
    AddModel("/config", MethodGroup::kRead, "KServe: the model's configuration", kAnyObject,
             AppendInfo<inference::ModelConfig>);
    AddModel("/stats", MethodGroup::kRead, "KServe: the model's statistics", kAnyObject,
             AppendStatistics);
  }

  void AddInference() {
    for (const char* version : {"", "/versions/{version}"}) {
      auto infer = [&dependencies = dependencies_,
                    models = Models(models_)](std::unique_ptr<HttpExchange> exchange) {
        std::string model = exchange->parameters[0];
        std::string wanted = VersionOf(*exchange);
        StartHttpInfer(dependencies, *models, std::move(model), std::move(wanted),
                       std::move(exchange));
      };
      HttpRoute& route = routes_.emplace_back(MakeHttpRoute(
          "POST", absl::StrCat("/v2/models/{model}", version, "/infer"), MethodGroup::kInfer,
          KServeError, std::move(infer), {"KServe: inference", kInferRequest, kInferResponse}));
      route.single_headers = SingleHeaders(kJsonLengthHeader);
    }
  }

  static std::string VersionOf(const HttpExchange& exchange) {
    return exchange.parameters.size() > 1 ? exchange.parameters[1] : "";
  }

  const DoorDependencies& dependencies_;
  const std::shared_ptr<KServeModels> models_;
  std::vector<HttpRoute> routes_;
};

}  // namespace

std::vector<HttpRoute> KServeRoutes(const DoorDependencies& dependencies) {
  return RouteMaker(dependencies).Make();
}

}  // namespace attendant
