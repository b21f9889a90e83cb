// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/backend.h"
#include "kernels/core/outputs.h"

namespace attendant::bench {

// One model prepared by the fastest back end, and sessions that run it. Every error ends the
// program.
class Engine {
 public:
  struct Options {
    std::string model;          // checkpoint folder; empty: random weights in the shape of `shape`
    std::string shape;          // a folder of tests/bench/shapes, or with a slash any folder
    int64_t max_positions = 0;  // of random weights; 0: those of the shape
    std::string dtype;
    std::string cpu_isa = "auto";
    std::string matmul = "auto";
    int threads = 1;           // of all replicas together
    int replicas = 1;          // sessions that compute at the same time; a divisor of `threads`
    bool pin_threads = false;  // each on a processor of its own
    int64_t max_batch_tokens = 0;
    double seconds = 1;  // of each measurement
    Pooling pooling = Pooling::kMean;
  };

  explicit Engine(const Options& options);

  const EncoderConfig& config() const { return encoder_->config(); }
  const PreparedInfo& info() const { return encoder_->info(); }
  const Options& options() const { return options_; }

  // The first replica's. Its batches hold at most max_batch_tokens tokens.
  Session& session() { return *sessions_.front(); }

  struct Rate {
    double tokens_per_second = 0;
    double tokens_per_cpu_second = 0;  // of all threads together
  };
  // Valid tokens over sequences of these lengths, batched in arrival order, each pooled and
  // normalized; a replica that is free takes the next batch.
  Rate MeasureRate(const std::vector<int64_t>& lens);
  // Seconds of one sequence alone on the first replica, every call, ascending.
  std::vector<double> Latencies(int64_t len);
  // [hidden], pooled and normalized, by the first replica.
  std::vector<float> Embed(std::span<const int32_t> ids);
  // FLOP/s, see matmul_ceiling.h.
  double Ceiling() const;

 private:
  const float* Run(Session& session, const PackedBatch& batch) const;

  Options options_;
  std::vector<SequenceOutputs> wanted_;  // of the largest batch
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<PreparedEncoder> encoder_;
  std::vector<std::unique_ptr<Session>> sessions_;  // [replicas]
};

}  // namespace attendant::bench
