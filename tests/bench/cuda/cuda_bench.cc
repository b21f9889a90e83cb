// SPDX-License-Identifier: Apache-2.0
// What the CUDA back end reaches on this machine's first GPU, as JSON lines:
//
//   cuda_bench [--smoke]
//
// Tokens a second of encoders and their share of the largest matmul's speed, measured in the same
// run; the latency of one short sequence; attention by itself. --smoke takes tiny sizes, to see
// that it runs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/runtime/handles.h"
#include "tests/support/cuda/device_run.h"

extern "C" const AttendantCudaInterface* attendant_cuda_interface(uint32_t version);

namespace attendant::cuda_test {
namespace {

using cuda::AllocateDevice;
using cuda::AllocatePinned;
using cuda::Check;
using cuda::DType;
using cuda::ListAlgorithms;
using cuda::Status;

// Every comparison's lengths.
constexpr int64_t kMixedLens[] = {
#include "tests/bench/mixed_lengths.inc"
};

struct Sizes {
  bool smoke = false;
  double seconds() const { return smoke ? 0 : 2; }
  int runs() const { return smoke ? 2 : 2000; }
};

// The least milliseconds of `work` put into a stream, over some repetitions.
Status TimeOnDevice(int repetitions, const std::function<Status(cudaStream_t)>& work,
                    float& milliseconds) {
  cuda::Stream stream;
  cuda::Event begin, end;
  ATTENDANT_CUDA_TRY(cuda::MakeStream(stream));
  ATTENDANT_CUDA_TRY(cuda::MakeEvent(cuda::EventUse::kTiming, begin));
  ATTENDANT_CUDA_TRY(cuda::MakeEvent(cuda::EventUse::kTiming, end));
  milliseconds = INFINITY;
  for (int i = 0; i < repetitions; ++i) {
    float once = 0;
    ATTENDANT_CUDA_TRY(Check(cudaEventRecord(begin.get(), stream.get()), "timing"));
    ATTENDANT_CUDA_TRY(work(stream.get()));
    ATTENDANT_CUDA_TRY(Check(cudaEventRecord(end.get(), stream.get()), "timing"));
    ATTENDANT_CUDA_TRY(Check(cudaEventSynchronize(end.get()), "timing"));
    ATTENDANT_CUDA_TRY(Check(cudaEventElapsedTime(&once, begin.get(), end.get()), "timing"));
    milliseconds = std::min(milliseconds, once);
  }
  return {};
}

// What one large bf16 matmul reaches: the machine's peak, as measured.
Status MeasurePeak(const Sizes& sizes, double& tflops) {
  const int64_t side = sizes.smoke ? 64 : 8192;
  const cuda::MatmulShape shape{.outputs = side, .inputs = side};
  cuda::CublasLt handle;
  cuda::DeviceMemory memory;
  ATTENDANT_CUDA_TRY(cuda::MakeCublasLt(handle));
  cuda::Carver measure;
  measure.Take<std::byte>(8 * side * side + cuda::kWorkspaceBytes);
  ATTENDANT_CUDA_TRY(AllocateDevice(measure.used_bytes(), memory));
  std::byte* at = memory.get();
  const int64_t bytes = 2 * side * side;
  const cuda::MatmulContext context{handle.get(), DType::kBf16, at + 4 * bytes};
  const cuda::MatmulOperands args{.x = at,
                                  .x_scales = nullptr,
                                  .weight = at + bytes,
                                  .weight_scales = nullptr,
                                  .bias = at + 2 * bytes,
                                  .out = at + 3 * bytes};
  const auto fill = [&](cudaStream_t stream) {
    return Check(cudaMemsetAsync(at, 0x3c, static_cast<size_t>(4 * bytes), stream), "filling");
  };
  float milliseconds = 0;
  ATTENDANT_CUDA_TRY(TimeOnDevice(1, fill, milliseconds));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  ATTENDANT_CUDA_TRY(ListAlgorithms(context, shape, side, 4, algorithms));
  tflops = 0;
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
    ATTENDANT_CUDA_TRY(TimeOnDevice(
        sizes.runs() / 10 + 1,
        [&](cudaStream_t stream) {
          return Multiply(context, shape, args, side, algorithm, stream);
        },
        milliseconds));
    tflops = std::max(
        tflops, 2e-9 * std::pow(static_cast<double>(side), 3) / static_cast<double>(milliseconds));
  }
  std::printf("{\"bench\":\"peak\",\"dtype\":\"bf16\",\"tflops\":%.1f}\n", tflops);
  return {};
}

struct Encoder {
  const char* name;
  AttendantCudaConfig config;
};

Encoder BertBase(bool smoke) {
  Encoder encoder{"bert-base", SmallConfig()};
  encoder.config.vocab = 1000;
  encoder.config.max_positions = 512;
  encoder.config.layers = smoke ? 1 : 12;
  encoder.config.heads = smoke ? 1 : 12;
  if (!smoke) encoder.config.hidden = 768;
  if (!smoke) encoder.config.ffn = 3072;
  return encoder;
}

Encoder MiniLm(bool smoke) {
  Encoder encoder = BertBase(smoke);
  encoder.name = "minilm-l6";
  if (!smoke) {
    encoder.config.layers = 6;
    encoder.config.hidden = 384;
    encoder.config.ffn = 1536;
  }
  return encoder;
}

// Of matmuls and attention, over the batch's own tokens.
double FlopsOf(const AttendantCudaConfig& config, const PackedSequences& batch) {
  const auto hidden = static_cast<double>(config.hidden);
  const double linear = 8 * hidden * hidden + 4 * hidden * static_cast<double>(config.ffn);
  double flops = linear * static_cast<double>(batch.tokens());
  for (int64_t i = 0; i < batch.batch(); ++i) {
    flops += 4 * hidden * static_cast<double>(batch.len(i)) * static_cast<double>(batch.len(i));
  }
  return flops * static_cast<double>(config.layers);
}

class EncoderBench {
 public:
  EncoderBench(const AttendantCudaInterface& interface, const Sizes& sizes, const Encoder& encoder,
               int32_t dtype, double peak)
      : interface_(interface),
        sizes_(sizes),
        name_(encoder.name),
        config_(encoder.config),
        dtype_(dtype),
        peak_(peak),
        weights_(encoder.config, 1) {}

  AttendantCudaStatus Start(int64_t max_tokens) {
    const AttendantCudaStatus status = MakeModel(interface_, 0, weights_, dtype_, model_);
    if (status.code != ATTENDANT_CUDA_OK) return status;
    return MakeSession(interface_, model_.get(), max_tokens, 1024, session_);
  }

  AttendantCudaStatus Throughput(const char* lengths, const PackedSequences& batch) {
    AttendantCudaProfile before{}, after{};
    interface_.profile(session_.get(), &before);
    int64_t runs = 0;
    const auto begin = Clock::now();
    do {
      if (const AttendantCudaStatus status = Run(batch); status.code != 0) return status;
      ++runs;
    } while (Since(begin) < sizes_.seconds());
    const double seconds = Since(begin);
    interface_.profile(session_.get(), &after);
    const double tflops = 1e-12 * FlopsOf(config_, batch) * static_cast<double>(runs) / seconds;
    std::printf(
        "{\"bench\":\"encoder\",\"model\":\"%s\",\"dtype\":\"%s\",\"lengths\":\"%s\","
        "\"batch\":%lld,\"tokens\":%lld,\"tokens_per_s\":%.0f,\"tflops\":%.1f,"
        "\"share_of_peak\":%.3f,\"device_busy\":%.3f}\n",
        name_, dtype_name(), lengths, static_cast<long long>(batch.batch()),
        static_cast<long long>(batch.tokens()),
        static_cast<double>(runs * batch.tokens()) / seconds, tflops, tflops / peak_,
        (after.busy_seconds - before.busy_seconds) / seconds);
    return {};
  }

  AttendantCudaStatus Latency(const PackedSequences& batch) {
    std::vector<double> milliseconds;
    for (int i = 0; i < sizes_.runs(); ++i) {
      const auto begin = Clock::now();
      if (const AttendantCudaStatus status = Run(batch); status.code != 0) return status;
      milliseconds.push_back(1e3 * Since(begin));
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    std::printf(
        "{\"bench\":\"latency\",\"model\":\"%s\",\"dtype\":\"%s\",\"tokens\":%lld,"
        "\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n",
        name_, dtype_name(), static_cast<long long>(batch.tokens()),
        milliseconds[milliseconds.size() / 2], milliseconds[milliseconds.size() * 99 / 100]);
    return {};
  }

  const AttendantCudaConfig& config() const { return config_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double Since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  const char* dtype_name() const {
    const char* const names[] = {"f32", "bf16", "f16", "fp8"};
    return names[dtype_];
  }
  // Embeddings, as a server is mostly asked for.
  AttendantCudaStatus Run(const PackedSequences& batch) {
    wanted_.assign(
        static_cast<size_t>(batch.batch()),
        {.last_hidden_state = 0, .pooling = ATTENDANT_CUDA_POOL_MEAN, .normalize = 1, .dims = 0});
    const AttendantCudaOutputSpec spec{.sequences = wanted_.data(), .layers = nullptr};
    const AttendantCudaBatch view = batch.view();
    AttendantCudaOutputs outputs{};
    return interface_.run(session_.get(), &view, &spec, &outputs);
  }

  const AttendantCudaInterface& interface_;
  Sizes sizes_;
  const char* name_;
  AttendantCudaConfig config_;
  int32_t dtype_;
  double peak_;
  RandomEncoder weights_;
  ModelPointer model_{nullptr, {&interface_}};
  SessionPointer session_{nullptr, {&interface_}};
  std::vector<AttendantCudaSequenceOutputs> wanted_;
};

AttendantCudaStatus BenchEncoder(const AttendantCudaInterface& interface, const Sizes& sizes,
                                 const Encoder& encoder, int32_t dtype, double peak) {
  EncoderBench bench(interface, sizes, encoder, dtype, peak);
  const std::vector<int64_t> uniform(sizes.smoke ? 2 : 128, sizes.smoke ? 20 : 128);
  std::vector<int64_t> mixed(std::begin(kMixedLens), std::end(kMixedLens));
  if (sizes.smoke) mixed.resize(3);
  AttendantCudaStatus status = bench.Start(sizes.smoke ? 256 : 16384);
  if (status.code == 0) {
    status = bench.Throughput("uniform", RandomBatch(bench.config(), uniform, 1));
  }
  if (status.code == 0) {
    status = bench.Throughput("mixed", RandomBatch(bench.config(), mixed, 2));
  }
  if (status.code == 0) status = bench.Latency(RandomBatch(bench.config(), {16}, 3));
  return status;
}

// Self-attention at BERT-base's shape over sequences of one length, random numbers in [-1, 1).
Status BenchAttention(const Sizes& sizes, int64_t len) {
  const int64_t batch = sizes.smoke ? 1 : 16384 / len;
  const int64_t heads = sizes.smoke ? 1 : 12, head_dim = 64, width = heads * head_dim;
  const int64_t tokens = len * batch;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i <= batch; ++i) starts.push_back(i * len);
  const int64_t max_tasks = cuda::MaxAttentionTasks(tokens, batch);
  const int64_t used_bytes = max_tasks * static_cast<int64_t>(sizeof(cuda::AttentionTask));
  // Rows begin at a multiple of 256 bytes, as in a session.
  const int64_t rows_begin = (16 + used_bytes + 255) / 256 * 256;
  cuda::PinnedMemory pinned;
  cuda::DeviceMemory device;
  const int64_t copied_bytes = rows_begin + 6 * tokens * width;
  ATTENDANT_CUDA_TRY(AllocatePinned(copied_bytes, pinned));
  std::mt19937 random(1);
  for (int64_t i = 0; i < 3 * tokens * width; ++i) {
    const cuda::Bf16 number = cuda::ToBf16(0x1p-31f * static_cast<float>(random()) - 1);
    std::memcpy(pinned.get() + rows_begin + 2 * i, &number, 2);
  }
  ATTENDANT_CUDA_TRY(AllocateDevice(rows_begin + 8 * tokens * width, device));
  auto* counts = reinterpret_cast<cuda::BatchCounts*>(pinned.get());
  const int64_t tasks = cuda::PlanSelfAttention(
      {.seq_starts = starts},
      {reinterpret_cast<cuda::AttentionTask*>(pinned.get() + 16), static_cast<size_t>(max_tasks)});
  *counts = {.tokens = static_cast<int32_t>(tokens),
             .sequences = static_cast<int32_t>(batch),
             .attention_tasks = static_cast<int32_t>(tasks)};
  std::byte* qkv = device.get() + rows_begin;
  ATTENDANT_CUDA_TRY(Check(cuda::PrepareAttention(DType::kBf16, head_dim), "attention"));
  const cuda::AttentionArgs args{
      .q = qkv,
      .k = qkv + 2 * width,
      .v = qkv + 4 * width,
      .context = qkv + 6 * tokens * width,
      .q_stride = 3 * width,
      .k_stride = 3 * width,
      .v_stride = 3 * width,
      .context_stride = width,
      .scale = 0.125f,
      .rule = {},
      .heads_per_key = 1,
      .distance = {},
      .bias = nullptr,
      .bias_stride = 0,
      .allowed = nullptr,
      .allowed_stride = 0,
      .mask_starts = nullptr,
      .tasks = reinterpret_cast<const cuda::AttentionTask*>(device.get() + 16)};
  const auto copy = [&](cudaStream_t stream) {
    return Check(cudaMemcpyAsync(device.get(), pinned.get(), static_cast<size_t>(copied_bytes),
                                 cudaMemcpyHostToDevice, stream),
                 "attention");
  };
  const auto attend = [&](cudaStream_t stream) {
    return Check(LaunchAttention(DType::kBf16, args,
                                 reinterpret_cast<const cuda::BatchCounts*>(device.get()), tasks,
                                 heads, head_dim, stream),
                 "attention");
  };
  float milliseconds = 0;
  ATTENDANT_CUDA_TRY(TimeOnDevice(1, copy, milliseconds));
  ATTENDANT_CUDA_TRY(TimeOnDevice(sizes.runs() / 10 + 1, attend, milliseconds));
  const double flops = 4.0 * static_cast<double>(width * len * len * batch);
  std::printf(
      "{\"bench\":\"attention\",\"dtype\":\"bf16\",\"head_dim\":64,\"len\":%lld,\"heads\":%lld,"
      "\"batch\":%lld,\"tflops\":%.1f,\"us\":%.1f}\n",
      static_cast<long long>(len), static_cast<long long>(heads), static_cast<long long>(batch),
      1e-9 * flops / static_cast<double>(milliseconds), 1e3 * static_cast<double>(milliseconds));
  return {};
}

int Fail(const AttendantCudaStatus& status) {
  std::fprintf(stderr, "%s\n", Describe(status).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  const Sizes sizes{.smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0};
  const AttendantCudaInterface& interface =
      *attendant_cuda_interface(ATTENDANT_CUDA_INTERFACE_VERSION);
  AttendantCudaDevice device{};
  if (const AttendantCudaStatus status = DescribeFirstDevice(interface, device); status.code != 0) {
    return Fail(status);
  }
  std::printf("{\"bench\":\"device\",\"name\":\"%s\",\"compute_capability\":%d}\n", device.name,
              device.compute_capability);
  double peak = 0;
  if (const Status status = MeasurePeak(sizes, peak); !status.ok()) {
    return Fail(status.for_caller());
  }
  for (const Encoder& encoder : {BertBase(sizes.smoke), MiniLm(sizes.smoke)}) {
    for (const int32_t dtype : {ATTENDANT_CUDA_BF16, ATTENDANT_CUDA_F16, ATTENDANT_CUDA_FP8}) {
      if ((device.dtypes >> dtype & 1) == 0) continue;
      const AttendantCudaStatus status = BenchEncoder(interface, sizes, encoder, dtype, peak);
      if (status.code != ATTENDANT_CUDA_OK) return Fail(status);
    }
  }
  for (const int64_t len : {48, 128, 512, 2048}) {
    if (sizes.smoke && len > 64) continue;
    if (const Status status = BenchAttention(sizes, len); !status.ok()) {
      return Fail(status.for_caller());
    }
  }
  return 0;
}

}  // namespace
}  // namespace attendant::cuda_test

int main(int argc, char** argv) { return attendant::cuda_test::Main(argc, argv); }
