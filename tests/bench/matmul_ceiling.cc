// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/matmul_ceiling.h"

#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/packed_linear.h"
#include "tests/bench/timing.h"

namespace attendant::bench {
namespace {

constexpr int64_t kRows = 256;

cpu::PackedLinear ConstantWeights(const cpu::Matmul& matmul, Arena& arena) {
  const int64_t k = matmul.options().k, n = matmul.options().n;
  const std::vector<float> weight(static_cast<size_t>(k * n), 0.01f), bias(static_cast<size_t>(n));
  const LinearWeights linear{{weight.data(), {n, k}}, {bias.data(), {n}}};
  return cpu::PackLinear(matmul, {&linear}, arena);
}

// Seconds of one product of kRows rows on the calling thread.
double ProductSeconds(const cpu::Matmul& matmul, const dnnl::engine& engine,
                      const cpu::PackedLinear& packed, double seconds) {
  cpu::UseOneThreadPerCall();
  std::vector<float> x(static_cast<size_t>(kRows * matmul.options().k), 0.5f);
  std::vector<float> y(static_cast<size_t>(kRows * matmul.options().n));
  std::vector<char> scratchpad(matmul.scratchpad_bytes() + 64);
  cpu::MatmulRunner runner(matmul, dnnl::stream(engine), scratchpad.data());
  const auto product = [&] {
    if (!runner.Run(kRows, x.data(), packed.weight, nullptr, y.data())) {
      Die(absl::InternalError("oneDNN could not execute a matmul"));
    }
  };
  product();
  return SecondsPerCall(seconds, product);
}

// Seconds per product where `threads` threads compute at once.
double SharedSeconds(const cpu::Matmul& matmul, const dnnl::engine& engine, int threads,
                     double seconds) {
  Arena arena(static_cast<size_t>(matmul.packed_bytes()) + Arena::kAlignment);
  const cpu::PackedLinear packed = ConstantWeights(matmul, arena);
  std::vector<double> times(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (double& time : times) {
    workers.emplace_back([&] { time = ProductSeconds(matmul, engine, packed, seconds); });
  }
  for (std::thread& worker : workers) worker.join();
  return std::reduce(times.begin(), times.end()) / threads / threads;
}

}  // namespace

double MatmulCeiling(const EncoderConfig& config, DType dtype, int threads, double seconds) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const std::pair<int64_t, int64_t> shapes[] = {{config.hidden, 3 * config.hidden},
                                                {config.hidden, config.hidden},
                                                {config.hidden, config.ffn},
                                                {config.ffn, config.hidden}};
  double flops = 0, time = 0;
  for (const auto& [k, n] : shapes) {
    auto matmul = cpu::Matmul::Create(engine, {.dtype = dtype, .k = k, .n = n, .max_rows = kRows});
    if (!matmul.ok()) Die(matmul.status());
    time += SharedSeconds(*matmul, engine, threads, seconds);
    flops += 2 * static_cast<double>(kRows * k * n);
  }
  return flops / time;
}

}  // namespace attendant::bench
