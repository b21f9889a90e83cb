// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/model_folder.h"

#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/colbert_head.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

constexpr char kQueryRoute[] = "query", kDocumentRoute[] = "document";

absl::Status FindTokenWeights(ModelFolder& folder) {
  for (const char* file : {"idf.json", "query_token_weights.txt"}) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool there,
                               IsFile(absl::StrCat(folder.root.path(), "/", file)));
    if (!there) continue;
    folder.query = QueryFolder{.folder = folder.root, .file = file};
    break;
  }
  return absl::OkStatus();
}

// The folder of the first module; empty: the model's own.
absl::StatusOr<std::string> FirstPath(const std::vector<JsonNode>& modules) {
  std::string path;
  if (modules.empty()) return path;
  ATTENDANT_RETURN_IF_ERROR(modules[0].Read("path", path));
  ATTENDANT_RETURN_IF_ERROR(CheckModulePath(modules[0], path));
  return path;
}

// A module of a route, by its class, today's and an older one.
struct RouteStep {
  absl::string_view type;
  absl::string_view older;

  bool Is(absl::string_view found) const {
    return ModuleClass(found) == type || ModuleClass(found) == older;
  }
};
constexpr RouteStep kDocumentSteps[] = {{"Transformer", "MLMTransformer"},
                                        {"SpladePooling", "SpladePooling"}};
constexpr RouteStep kQuerySteps[] = {{"SparseStaticEmbedding", "SparseStaticEmbedding"}};

// The folders of a route's modules, which must be `steps`.
absl::StatusOr<std::vector<std::string>> ReadRoute(const JsonNode& config, const char* name,
                                                   std::span<const RouteStep> steps) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode structure, config.Field("structure"));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode types, config.Field("types"));
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode route, structure.Field(name));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> modules, route.Elements());
  const auto append = [](std::string* out, const RouteStep& step) {
    absl::StrAppend(out, step.type);
  };
  const std::string supported = absl::StrJoin(steps, ", ", append);
  if (modules.size() != steps.size()) {
    return Unsupported(structure, name, absl::StrCat("a route of ", modules.size(), " modules"),
                       supported);
  }
  std::vector<std::string> paths;
  for (size_t i = 0; i < steps.size(); ++i) {
    std::string path, type;
    ATTENDANT_RETURN_IF_ERROR(modules[i].Get(path));
    ATTENDANT_RETURN_IF_ERROR(CheckModulePath(modules[i], path));
    ATTENDANT_RETURN_IF_ERROR(types.Require(path, type));
    if (!steps[i].Is(type)) return Unsupported(types, path, Quoted(type), supported);
    paths.push_back(std::move(path));
  }
  return paths;
}

// Whether texts without a prompt are queries.
absl::StatusOr<bool> ReadDefaultRoute(const JsonNode& config) {
  if (!config.Has("parameters")) return false;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode parameters, config.Field("parameters"));
  std::string route = kDocumentRoute;
  ATTENDANT_RETURN_IF_ERROR(parameters.Read("default_route", route));
  if (route != kDocumentRoute && route != kQueryRoute) {
    return Unsupported(parameters, "default_route", Quoted(route), "query, document");
  }
  if (parameters.Has("route_mappings")) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode mappings, parameters.Field("route_mappings"));
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, mappings.FieldNames());
    if (!names.empty()) return Unsupported(parameters, "route_mappings", Quoted(names[0]), "none");
  }
  return route == kQueryRoute;
}

absl::Status CheckRoutes(const JsonNode& config) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode structure, config.Field("structure"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> routes, structure.FieldNames());
  for (const std::string& route : routes) {
    if (route == kQueryRoute || route == kDocumentRoute) continue;
    return absl::UnimplementedError(absl::StrCat(structure.where(), ": route ", Quoted(route),
                                                 " is not supported; supported: query, document"));
  }
  return absl::OkStatus();
}

// REQUIRES: `folder.encoder` is the folder of the Router.
absl::Status ReadRouter(ModelFolder& folder) {
  const JsonFolder router = folder.encoder;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, router.Read("router_config.json"));
  ATTENDANT_RETURN_IF_ERROR(CheckRoutes(config));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> document,
                             ReadRoute(config, kDocumentRoute, kDocumentSteps));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> query,
                             ReadRoute(config, kQueryRoute, kQuerySteps));
  ATTENDANT_ASSIGN_OR_RETURN(const bool queries, ReadDefaultRoute(config));
  folder.encoder = router.At(document[0]);
  folder.splade = router.At(document[1]);
  folder.query = QueryFolder{.folder = router.At(query[0]), .is_default = queries};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelFolder> FindModelFolder(const std::string& directory) {
  const JsonFolder root(directory);
  ModelFolder folder{.root = root, .encoder = root};
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules, root.Find("modules.json"));
  if (!modules.has_value()) {
    ATTENDANT_RETURN_IF_ERROR(FindTokenWeights(folder));
    return folder;
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules->Elements());
  ATTENDANT_ASSIGN_OR_RETURN(const bool router, IsModule(*modules, 0, "Router"));
  ATTENDANT_ASSIGN_OR_RETURN(const bool colbert, IsColbertChain(*modules));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string path, FirstPath(elements));
  folder.encoder = root.At(path);
  if (colbert && !path.empty()) {
    return Unsupported(elements[0], "path", Quoted(path), "'', of a ColBERT model");
  }
  if (!router) return folder;
  if (elements.size() > 1) {
    return absl::UnimplementedError(absl::StrCat(modules->where(), " has ", elements.size(),
                                                 " steps; behind a Router none is supported"));
  }
  ATTENDANT_RETURN_IF_ERROR(ReadRouter(folder));
  return folder;
}

}  // namespace attendant
