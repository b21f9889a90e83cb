// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/models/registry_fixture.h"

namespace attendant {

inline constexpr absl::Duration kLimit = absl::Seconds(30);

class ModelLifeTest : public ModelRegistryTest {
 protected:
  ModelLifeTest() : ModelLifeTest(absl::InfiniteDuration(), absl::Seconds(20)) {}
  ModelLifeTest(absl::Duration unload_idle, absl::Duration drain_timeout,
                absl::Duration first_retry = absl::Minutes(1),
                ModelControl control = ModelControl::kExplicit)
      : ModelRegistryTest({.control = control,
                           .unload_idle = unload_idle,
                           .first_retry = first_retry,
                           .drain_timeout = drain_timeout,
                           .find = [this](const std::string& name) { return Find(name); },
                           .fingerprint =
                               [this](const ModelSource& source) {
                                 absl::MutexLock lock(&versions_mutex_);
                                 return fingerprints_[source.version];
                               }}) {}

  // The versions that `versions_` names, unless there is an error.
  absl::StatusOr<std::vector<ModelSource>> Find(const std::string& name) {
    absl::MutexLock lock(&versions_mutex_);
    if (!find_error_.ok()) return find_error_;
    std::vector<ModelSource> sources;
    for (const auto& [version, folder] : versions_) {
      if (name == "tiny" || name == "other") {
        sources.push_back({name, directory_ / folder, version});
      }
    }
    if (sources.empty()) return absl::NotFoundError("no such model");
    return sources;
  }
  void SetVersions(std::vector<std::pair<int64_t, std::string>> versions) {
    absl::MutexLock lock(&versions_mutex_);
    versions_ = std::move(versions);
  }
  void SetFindError(absl::Status error) {
    absl::MutexLock lock(&versions_mutex_);
    find_error_ = std::move(error);
  }
  void SetFingerprint(int64_t version, std::string fingerprint) {
    absl::MutexLock lock(&versions_mutex_);
    fingerprints_[version] = std::move(fingerprint);
  }

  void Start() {
    registry_.SetModels({{"tiny", directory_ / "tiny"}});
    registry_.StartLoading();
    AwaitChange("tiny", ModelState::kReady);
  }
  absl::Status Load(const std::string& name = "tiny") { return Await(&ModelRegistry::Load, name); }
  absl::Status Unload(const std::string& name = "tiny") {
    return Await(&ModelRegistry::Unload, name);
  }
  absl::Status Await(void (ModelRegistry::*change)(const std::string&, ModelRegistry::Done),
                     const std::string& name) {
    std::promise<absl::Status> ended;
    (registry_.*change)(name, [&](const absl::Status& status) { ended.set_value(status); });
    return ended.get_future().get();
  }

  void Break() { WriteFile(directory_ / "tiny/config.json", "{"); }
  void Mend() { WriteTinyModel(directory_ / "tiny"); }

  // A request that shares in its model until it is answered.
  std::future<absl::Status> Submit(std::shared_ptr<EncoderModel> model) {
    auto ended = std::make_shared<std::promise<absl::Status>>();
    WorkRequest request;
    EncodeWork work;
    work.sequences.push_back({.token_ids = {5}, .positions = {0}, .segment_ids = {0}});
    work.outputs.pooling = Pooling::kMean;
    request.work = std::move(work);
    Batcher& batcher = *model->batcher;  // `model` keeps it until Submit returns, as a run does
    request.done = [ended, model](const absl::StatusOr<FinishedWork>& finished) {
      ended->set_value(finished.status());
    };
    std::future<absl::Status> future = ended->get_future();
    submitted_ = batcher.Submit(std::move(request));
    return future;
  }

  RequestId submitted_ = 0;  // the last one
  absl::Mutex versions_mutex_;
  std::vector<std::pair<int64_t, std::string>> versions_ ABSL_GUARDED_BY(versions_mutex_) = {
      {1, "tiny"}};
  absl::Status find_error_ ABSL_GUARDED_BY(versions_mutex_);
  std::map<int64_t, std::string> fingerprints_ ABSL_GUARDED_BY(versions_mutex_);  // else not known
};

inline void AwaitFreed(const std::weak_ptr<EncoderModel>& model) {
  const absl::Time limit = absl::Now() + kLimit;
  while (!model.expired()) ASSERT_LT(absl::Now(), limit);
}

// Requests of a model that is unloaded get no time.
class ImpatientTest : public ModelLifeTest {
 protected:
  ImpatientTest() : ModelLifeTest(absl::InfiniteDuration(), absl::ZeroDuration()) {}
};

}  // namespace attendant
