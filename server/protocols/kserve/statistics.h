// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "server/models/encoder_model.h"
#include "server/models/model_observer.h"
#include "server/protocols/kserve/name_statistics.h"
#include "server/protocols/kserve/served_kinds.h"

namespace attendant {

// A NameStatistics for each served name of a model. Thread-safe.
//
// Sequences of all names share batches, and a batch does not know the names of its requests. A
// batch counts for every name that has a request between Enter and Leave when the batch ends: exact
// while clients call a model by one name at a time, and never less than the batches that ran for a
// name.
class KServeStatistics final : public BatchListener {
 public:
  // The statistics of this model, shared by gRPC and HTTP. Made with the first request; they live
  // as long as the model.
  static KServeStatistics& Of(const EncoderModel& model) {
    return model.observer->ListenerOf<KServeStatistics>();
  }

  // REQUIRES, here and below: `kind` is one of ServedKinds().
  NameStatistics& operator[](const ServedKind& kind) { return entries_[Index(kind)].statistics; }

  void Enter(const ServedKind& kind) { ++entries_[Index(kind)].inflight; }
  void Leave(const ServedKind& kind) { --entries_[Index(kind)].inflight; }

  void OnBatch(int64_t sequences, absl::Duration compute) override {
    for (Entry& entry : entries_) {
      if (entry.inflight > 0) entry.statistics.RecordBatch(sequences, compute);
    }
  }

 private:
  struct Entry {
    NameStatistics statistics;
    std::atomic<int64_t> inflight{0};
  };
  static size_t Index(const ServedKind& kind) {
    return static_cast<size_t>(&kind - ServedKinds().data());
  }

  std::vector<Entry> entries_ = std::vector<Entry>(ServedKinds().size());
};

}  // namespace attendant
