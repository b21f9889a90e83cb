// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/models/attention_model.h"
#include "server/models/encoder_model.h"
#include "server/models/model_loader.h"
#include "server/models/model_options.h"
#include "server/models/registry/idle_policy.h"
#include "server/models/registry/load_queue.h"
#include "server/models/registry/model_reaper.h"
#include "server/models/registry/model_status.h"
#include "server/models/registry/model_table.h"
#include "server/models/registry/registry_options.h"
#include "server/threads/executor.h"
#include "server/threads/steady_time.h"

namespace attendant {

// The models of this process and the life of each: load, warm, serve, replace, unload, drain.
// Thread-safe.
//
// One thread does all loading and unloading, one after the other. A new instance of a model is
// loaded beside the one that serves; then new requests go to the new one, and the old one is freed
// after the last request that shares in it. So replacing a model fails no request.
//
// A load of a model loads those of its versions that are new, have other files than at their last
// load, or do not serve. The others serve on, undisturbed.
class ModelRegistry {
 public:
  // Called after every change of a version's state, model or number of stalled workers, by the
  // thread that made it. A version that List has no more is kUnloaded.
  using Listener = std::function<void(const ModelStatus& status, ModelNews news)>;
  // Called once with how a load or unload ended: from the loading thread, inside the call, or with
  // UNAVAILABLE by Drain.
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // Completions of requests run on `executor`. `metrics` must outlive the registry.
  ModelRegistry(ModelLoader loader, ServerMetrics& metrics, Executor executor,
                RegistryOptions options = {});
  // REQUIRES: no pointer to a model is left.
  ~ModelRegistry();
  ModelRegistry(const ModelRegistry&) = delete;
  ModelRegistry& operator=(const ModelRegistry&) = delete;

  void SetListener(Listener listener);  // before the first Load

  // Adds models that are to be loaded, and others that are loaded on request only. Called once,
  // before StartLoading. REQUIRES: names and versions differ.
  void SetModels(std::vector<ModelSource> sources, std::vector<ModelSource> unloaded = {});

  // Adds a model that needs no loading. Find and Drain treat it like the others; List leaves it
  // out, and it makes nothing ready. Called before StartLoading.
  void AddBuiltIn(std::unique_ptr<ServableModel> model);

  // Starts the loading thread with the models of SetModels, in their order. Called once.
  void StartLoading();

  // Loads the versions of `name` that the finder names, each beside the instance that serves, which
  // then is given up; other versions are given up when all loads went well. When a load fails, the
  // former instance stays. Versions whose files are those of their last load are not loaded
  // (RegistryOptions::fingerprint), unless they do not serve, have stalled, or are idle; with kPoll
  // they stay idle. OK once all serve. A call that finds the same load waiting joins it. NOT_FOUND,
  // the error of the load, or UNAVAILABLE when the server drains.
  void Load(const std::string& name, Done done);
  // Unloads a model. From the start of the unload, requests for it get UNAVAILABLE. OK once the
  // earlier requests are answered. NOT_FOUND: it was never loaded.
  void Unload(const std::string& name, Done done);
  // Like Load and Unload, for a caller that hears of a refusal at once: then `done` is not called.
  // OK: the job is queued.
  absl::Status StartLoad(const std::string& name, Done done);
  absl::Status StartUnload(const std::string& name, Done done);

  // OK when clients may call Load and Unload, else UNAVAILABLE with the reason.
  absl::Status CheckControl() const;

  // True if the model was unloaded because it was idle, so that a request must wait for its load.
  // False after a failed load until the next try is due. The version as for Find.
  bool NeedsLoad(absl::string_view name, absl::string_view version = "") const;
  // Starts the load of such a model. Calls `then` when the load has ended; Find then returns the
  // model or the error. RESOURCE_EXHAUSTED: too many loads wait. UNAVAILABLE: the server drains.
  void LoadIdle(const std::string& name, Done then);

  // The model to share in, for as long as a request lasts. The version is a decimal number, or
  // empty: the highest that serves, or else the highest that was not loaded again. NOT_FOUND: no
  // such model or version. UNAVAILABLE: it is loading, idle, draining, unloaded, lost, or failed to
  // load; the message says why. INVALID_ARGUMENT: it is of the other kind.
  absl::StatusOr<std::shared_ptr<EncoderModel>> Find(absl::string_view name,
                                                     absl::string_view version = "") const;
  absl::StatusOr<std::shared_ptr<AttentionModel>> FindAttention(absl::string_view name) const;

  // An encoder that serves, loaded or idle; errors as Find's.
  absl::StatusOr<ModelStatus> Describe(absl::string_view name,
                                       absl::string_view version = "") const;

  // Every version of every model, in the order in which the models were added.
  std::vector<ModelStatus> List() const;

  // OK when the server is ready and no model has stalled; else UNAVAILABLE, naming a model that is
  // not and why. A server without any model is ready where clients load models (kExplicit).
  absl::Status Ready() const;

  // UNAVAILABLE when a device is lost, and no model serves or loads: a new process could use it.
  absl::Status Live() const;

  // Makes Ready say that the server stops. The models continue to serve until Drain.
  void AnnounceDrain();

  // Every model turns kDraining, refuses new requests, and finishes the admitted ones until
  // `deadline`, a steady time. Loads that wait or run are answered with UNAVAILABLE at once; a
  // model that is still loading is given up once its load ends. A second call finds all drained.
  void Drain(absl::Time deadline);

 private:
  // Requests, probes and drains: model_registry.cc.
  absl::StatusOr<std::shared_ptr<ServableModel>> FindReady(absl::string_view name,
                                                           absl::string_view version) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The model has lost all that it computed on. Nothing works there until the process ends, so the
  // other models of the same devices are lost too, though no request has told.
  void Lose(ServableModel& model, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  ModelTable::Models OthersOnDevicesOf(ServableModel& model) const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetStalled(const ServableModel* model, int workers) ABSL_LOCKS_EXCLUDED(mutex_);
  ModelTable::Models StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);  // the models to wait for

  // The two ends of a change of the table. Under the lock: gives up its models, each of which is
  // freed after its last request. Returns their life_ids.
  std::vector<int64_t> GiveUp(TableChange& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Then, without the lock: tells the listener.
  void Notify(const TableChange& change, ModelNews news = ModelNews::kState) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // After a change by which a model may have stopped to serve. Under the lock: a load that ends
  // meanwhile counts it as loaded again.
  void UncountLoaded(const TableChange& change) ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // The loading thread: model_jobs.cc.
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  bool AwaitWork() ABSL_LOCKS_EXCLUDED(mutex_);  // false: the server drains
  std::optional<LoadJob> TakeJob() ABSL_LOCKS_EXCLUDED(mutex_);
  void AddJob(LoadJob job, Done done) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes `done` if there is something to wait for. An error: the job is refused.
  absl::Status TryAddJob(LoadJob job, Done& done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const LoadJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Done> TakeRunning() ABSL_LOCKS_EXCLUDED(mutex_);
  // The loads of an idle model that wait, if none of its versions needs one any more.
  std::vector<Done> TakeIdleLoads(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<ModelSource>> FindSources(const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RunLoad(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends loads of the model that never began: of the entries that are meant.
  void FailLoads(const std::string& name, const absl::Status& why,
                 absl::FunctionRef<bool(const ModelEntry&)> is_meant) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RunUnload(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // False: there is nothing to unload.
  bool SetUnloaded(const std::string& name, ModelState state) ABSL_LOCKS_EXCLUDED(mutex_);
  // Loads the versions that are idle: all, or those that could not be loaded again.
  void RunLoadIdle(const std::string& name, bool only_failed) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Fingerprint(const ModelSource& source) const;  // as it is now
  // True if the version needs no load.
  bool IsCurrent(const ModelSource& source) const ABSL_LOCKS_EXCLUDED(mutex_);
  void KeepModel(const ModelSource& source) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status LoadVersion(const ModelSource& source) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status BeginLoad(const ModelSource& source) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status EndLoad(const ModelSource& source, const std::string& fingerprint,
                       std::unique_ptr<ServableModel> loaded) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the error as the version has it.
  absl::Status FailLoad(const ModelSource& source, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveOthers(const std::string& name, const std::vector<ModelSource>& kept)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void UnloadIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until what is given up of the model is freed, or the drain timeout passes. Returns
  // whether it is.
  bool AwaitGivenUp(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

  const ModelLoader load_;
  ServerMetrics& metrics_;
  const Executor executor_;
  const RegistryOptions options_;
  const IdlePolicy idle_;
  Listener listener_;

  mutable absl::Mutex mutex_;  // of all parts, which have no lock
  SteadyCondVar work_;         // a job, or draining: for the loading thread
  ModelTable table_ ABSL_GUARDED_BY(mutex_);
  LoadQueue jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<ModelSource> given_ ABSL_GUARDED_BY(mutex_);  // by SetModels
  bool drain_announced_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> any_idle_{false};  // as in the table, read without the lock

  ModelReaper reaper_;
  std::thread loading_;  // last: it uses all of the above
};

}  // namespace attendant
