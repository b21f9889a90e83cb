// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/metrics/server_metrics.h"
#include "server/models/attention_model.h"
#include "server/models/encoder_model.h"
#include "server/models/model_loader.h"
#include "server/models/model_options.h"
#include "server/models/model_status.h"

namespace attendant {

// When the whole server counts as ready: once every model has ended its load, and one, or all,
// serve.
enum class Readiness { kAnyModel, kEveryModel };

// The models of this process and the life of each: load, warm, serve, drain. Thread-safe.
class ModelRegistry {
 public:
  // Called after every change of a model's state or number of stalled workers, by the thread that
  // made it.
  using Listener = std::function<void(const std::string& name, ModelState state)>;

  // Completions of requests run on `executor`. `metrics` must outlive the registry.
  ModelRegistry(ModelLoader loader, ServerMetrics& metrics, Executor executor,
                Readiness readiness = Readiness::kAnyModel);
  ~ModelRegistry();
  ModelRegistry(const ModelRegistry&) = delete;
  ModelRegistry& operator=(const ModelRegistry&) = delete;

  void SetListener(Listener listener);  // before the first Load

  // Adds models that are to be loaded. Called once, before StartLoading. REQUIRES: their names
  // differ.
  void SetModels(std::vector<ModelSource> sources);

  // Adds a model that needs no loading. Find and Drain treat it like the others; List leaves it
  // out, and it makes nothing ready. Called before StartLoading.
  void AddBuiltIn(std::unique_ptr<ServableModel> model);

  // Loads the models one after the other on a thread of its own, and returns at once. Called once.
  void StartLoading();

  // NOT_FOUND: no such model. UNAVAILABLE: it is loading, draining, lost, or failed to load; the
  // message says why. INVALID_ARGUMENT: it is of the other kind. The model lives as long as the
  // registry.
  absl::StatusOr<EncoderModel*> Find(absl::string_view name) const;
  absl::StatusOr<AttentionModel*> FindAttention(absl::string_view name) const;

  std::vector<ModelStatus> List() const;  // in the order in which they were added

  // OK when the server is ready and no model has stalled; else UNAVAILABLE, naming a model that is
  // not and why.
  absl::Status Ready() const;

  // From now on Ready says that the server stops. The models go on serving until Drain.
  void AnnounceDrain();

  // Whether a model of this name was added, in any state.
  bool Contains(absl::string_view name) const;

  // Every model turns kDraining, refuses new requests, and finishes the admitted ones until
  // `deadline`. A model that is still loading is given up once its load ends. Called once.
  void Drain(absl::Time deadline);

 private:
  struct Entry {
    ModelSource source;
    ModelStatus status;
    std::unique_ptr<ServableModel> model;
    bool built_in = false;

    void SetModel(std::unique_ptr<ServableModel> loaded);
  };

  const Entry* FindEntry(absl::string_view name) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // A model that is ready; errors as Find's.
  absl::StatusOr<ServableModel*> FindReady(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Notify(const std::string& name, ModelState state) const;
  void LoadAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndLoad(size_t index, absl::StatusOr<std::unique_ptr<ServableModel>> model)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Lose(size_t index, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetStalled(size_t index, int workers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the models to wait for.
  std::vector<ServableModel*> StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);

  const ModelLoader load_;
  ServerMetrics& metrics_;
  const Executor executor_;
  const Readiness readiness_;
  Listener listener_;

  mutable absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // fixed in number once loading starts
  bool drain_announced_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread loading_;  // last: it uses all of the above
};

}  // namespace attendant
