// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backends/backends.h"
#include "kernels/core/threads/thread_team.h"
#include "server/batching/batcher.h"
#include "server/models/encoder_model.h"

namespace attendant {

class ServerMetrics;
struct AttentionModel;

enum class ModelState {
  kLoading,
  kReady,
  kFailed,  // it did not load
  kLost,    // it served until its devices were lost
  kDraining
};

struct ModelSource {
  std::string name;
  std::string directory;
};

// What one attention request may take.
struct AttentionLimits {
  int64_t max_tokens = 65536;                 // queries and keys of all its sequences
  int64_t max_bytes = int64_t{256} << 20;     // scratch memory while it is computed
  int64_t max_operations = int64_t{1} << 40;  // multiply-adds, about
};

struct ModelOptions {
  std::string dtype = "auto";  // a DTypeName or auto
  std::string backend = "cpu";
  BackendOptions backend_options{};
  std::vector<ThreadTeam> replicas{1};  // on the CPU, a session for each team
  int device_sessions = 0;              // elsewhere so many; 0: what the back end is best used with
  BatcherOptions batcher;
  AttentionLimits attention{};
};

// Makes a model that is ready to serve, an encoder or an attention module; a test gives its own.
using ModelLoader = std::function<absl::StatusOr<std::unique_ptr<AnyModel>>(
    const ModelSource& source, ServerMetrics& metrics, const Executor& executor)>;

struct ModelStatus {
  std::string name;
  ModelState state = ModelState::kLoading;
  absl::Status error;  // why, with kFailed and kLost
  // With kReady, kLost and kDraining, one of them.
  Model* model = nullptr;
  AttentionModel* attention = nullptr;
};

// The models of this process and the life of each: load, warm, serve, drain. Thread-safe.
class ModelRegistry {
 public:
  // Called after every change of a model's state, from the thread that changed it.
  using Listener = std::function<void(const std::string& name, ModelState state)>;

  // Completions of requests run on `executor`. What is passed by reference must outlive the
  // registry.
  ModelRegistry(ModelLoader loader, ServerMetrics& metrics, Executor executor);
  // Loads checkpoints with `options`.
  ModelRegistry(const ModelOptions& options, ServerMetrics& metrics, Executor executor);
  ~ModelRegistry();
  ModelRegistry(const ModelRegistry&) = delete;
  ModelRegistry& operator=(const ModelRegistry&) = delete;

  void SetListener(Listener listener);  // before the first Load

  // From now on these are known, and loading. Called once, before StartLoading. REQUIRES: no two of
  // one name.
  void SetModels(std::vector<ModelSource> sources);

  // Adds a model that needs no loading: found, known and drained like the others, but not listed,
  // and nothing is ready because of it. Before StartLoading.
  void AddBuiltIn(std::unique_ptr<AnyModel> model);

  // Loads the models one after the other on a thread of its own, and returns at once. Called once.
  void StartLoading();

  // NOT_FOUND: no such model. UNAVAILABLE: it is loading, draining, lost, or failed to load (says
  // why).
  // INVALID_ARGUMENT: it is of the other kind. The model lives as long as the registry.
  absl::StatusOr<Model*> Find(absl::string_view name) const;
  absl::StatusOr<AttentionModel*> FindAttention(absl::string_view name) const;

  std::vector<ModelStatus> List() const;  // in the order they were given

  // OK when every model is ready; else UNAVAILABLE, naming one that is not and why.
  absl::Status Ready() const;

  // Whether a model of this name was given, whatever became of it.
  bool Knows(absl::string_view name) const;

  // Every model turns kDraining, refuses new requests, and finishes the admitted ones until
  // `deadline`. A model that is still loading is given up once its load ends. Called once.
  void Drain(absl::Time deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
