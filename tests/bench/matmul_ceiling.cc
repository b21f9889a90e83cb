// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/matmul_ceiling.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/bench_matmul.h"
#include "tests/bench/timing.h"

namespace attendant::bench {
namespace {

constexpr int64_t kRows = 256;

// Seconds per matmul where `threads` threads compute at once.
double SharedSeconds(const BenchMatmulWeights& weights, int threads, double seconds) {
  std::vector<double> times(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (double& time : times) {
    workers.emplace_back([&] {
      BenchMatmul matmul(weights);
      matmul.Run(kRows);
      // The median: another process's turn is no property of the machine.
      const auto times_of_calls = SecondsOfCalls(seconds, [&] { matmul.Run(kRows); });
      time = times_of_calls[times_of_calls.size() / 2];
    });
  }
  for (std::thread& worker : workers) worker.join();
  return std::reduce(times.begin(), times.end()) / threads / threads;
}

}  // namespace

double MatmulCeiling(const EncoderConfig& config, DType dtype, cpu::CpuIsa isa, int threads,
                     double seconds) {
  const std::pair<int64_t, int64_t> shapes[] = {{config.hidden, config.qkv_width()},
                                                {config.context_width(), config.hidden},
                                                {config.hidden, config.ffn_inputs()},
                                                {config.ffn, config.hidden}};
  double flops = 0, time = 0;
  for (const std::pair<int64_t, int64_t>& shape : shapes) {
    const int64_t k = shape.first, n = shape.second;
    const auto by = [&](bool onednn) {
      const BenchMatmulWeights weights(
          {.dtype = dtype, .k = k, .n = n, .max_rows = kRows, .by_onednn = onednn, .isa = isa});
      return SharedSeconds(weights, threads, seconds / 2);
    };
    time += std::min(by(true), by(false));
    flops += 2 * static_cast<double>(kRows * k * n);
  }
  return flops / time;
}

}  // namespace attendant::bench
