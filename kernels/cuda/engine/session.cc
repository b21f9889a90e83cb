// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/session.h"

#include <algorithm>

#include "kernels/cuda/engine/session_observer.h"
#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/handles.h"

namespace attendant::cuda {
namespace {

// A layer has four matmuls, queries and keys that are normalized and placed, attention, an
// activation, two norms, one or two quantizations and what callers ask for of its inside.
constexpr int64_t kMarksPerLayer = 14;

bool WantsLayers(const AttendantCudaOutputSpec& spec, int64_t batch) {
  if (spec.layers == nullptr) return false;
  return std::any_of(spec.layers, spec.layers + batch, [](const AttendantCudaLayerOutputs& one) {
    return one.num_hidden_layers > 0 ||
           (one.num_attention_layers > 0 && one.num_attention_heads > 0);
  });
}

}  // namespace

Session::Session(Model& model, const AttendantCudaLimits& limits)
    : model_(model), limits_(limits), size_(SizeSession(model.config(), limits)) {}

Session::~Session() {
  // The members release memory that belongs to this device and may be in use.
  cudaSetDevice(model_.device());
  if (compute_ != nullptr) cudaStreamSynchronize(compute_.get());
}

Status Session::Create(Model& model, const AttendantCudaLimits& limits,
                       std::unique_ptr<Session>& session) {
  if (limits.max_batch_tokens <= 0 || limits.max_batch_tokens > kMaxSessionTokens ||
      limits.max_batch_sequences <= 0 || limits.max_batch_sequences > kMaxSessionTokens) {
    return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT,
                         "a session of %lld tokens in %lld sequences, the limit of both is %lld",
                         static_cast<long long>(limits.max_batch_tokens),
                         static_cast<long long>(limits.max_batch_sequences),
                         static_cast<long long>(kMaxSessionTokens));
  }
  const ProfilerRange range("attendant: create session");
  ATTENDANT_CUDA_TRY(UseDevice(model.device()));
  std::unique_ptr<Session> made(new Session(model, limits));
  ATTENDANT_CUDA_TRY(made->Allocate());
  ATTENDANT_CUDA_TRY(made->WarmUp());
  ATTENDANT_CUDA_TRY(made->RecordGraphs());
  session = std::move(made);
  return {};
}

Status Session::Allocate() {
  Carver device, pinned;
  PlaceDeviceBuffers(model_, size_, device);
  PlacePinnedBuffers(model_, size_, pinned);
  bytes_ = device.used_bytes();
  ATTENDANT_CUDA_TRY(MakeStream(compute_));
  ATTENDANT_CUDA_TRY(AllocateDevice(bytes_, device_memory_));
  ATTENDANT_CUDA_TRY(AllocatePinned(pinned.used_bytes(), pinned_memory_));
  device = Carver(device_memory_.get());
  pinned = Carver(pinned_memory_.get());
  device_ = PlaceDeviceBuffers(model_, size_, device);
  pinned_ = PlacePinnedBuffers(model_, size_, pinned);
  ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kTiming, begin_));
  ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kTiming, end_));
  ATTENDANT_CUDA_TRY(timer_.Start(kMarksPerLayer * model_.config().layers + 8));
  return pipe_.Start(device_.pieces, pinned_.pieces, size_.piece_floats);
}

// Rows that no batch has reached yet hold zeros, and every kernel has been loaded before a graph
// that has it is recorded.
Status Session::WarmUp() {
  const MatmulContext matmuls{model_.cublaslt(), model_.dtype(), device_.workspace};
  ATTENDANT_CUDA_TRY(
      ChooseAlgorithms(model_, matmuls, device_, size_.rows, compute_.get(), algorithms_));
  ATTENDANT_CUDA_TRY(Check(cudaMemsetAsync(device_memory_.get(), 0,
                                           static_cast<size_t>(device_.rows_bytes), compute_.get()),
                           "clearing the session's memory"));
  pass_ = std::make_unique<EncoderPass>(model_, device_, algorithms_, limits_.max_batch_sequences);
  // BatchCounts are zeros as well: no block computes anything.
  const PassSize largest{.rows = size_.rows,
                         .tokens = size_.tokens,
                         .sequences = std::min(size_.tokens, size_.sequences),
                         .attention_tasks = MaxAttentionTasks(size_.tokens, size_.sequences)};
  ATTENDANT_CUDA_TRY(pass_->Issue(largest, compute_.get(), nullptr));
  ATTENDANT_CUDA_TRY(Check(LaunchToFloat(model_.states(), device_.states, device_.last_hidden, 1,
                                         model_.config().hidden, compute_.get()),
                           "converting states"));
  const int64_t stride = QkvWidth(model_.config());
  ATTENDANT_CUDA_TRY(Check(LaunchAttentionWeights(model_.states(),
                                                  {.q = device_.wide,
                                                   .k = device_.wide,
                                                   .q_stride = stride,
                                                   .k_stride = stride,
                                                   .scale = 1,
                                                   .out = device_.pieces},
                                                  1, model_.head_dim(), compute_.get()),
                           "attention weights"));
  return Check(cudaStreamSynchronize(compute_.get()), "the first pass");
}

Status Session::RecordGraphs() {
  for (const int64_t rows : ListBuckets(std::min(limits_.max_batch_tokens, kMaxGraphTokens))) {
    RecordedPass pass;
    pass.size.rows = rows;
    pass.size.tokens = std::min(rows, limits_.max_batch_tokens);
    pass.size.sequences = std::min(GraphSequences(rows), limits_.max_batch_sequences);
    pass.size.attention_tasks = MaxAttentionTasks(pass.size.tokens, pass.size.sequences);
    ATTENDANT_CUDA_TRY(Record(pass));
    graphs_.push_back(std::move(pass));
  }
  return Check(cudaStreamSynchronize(compute_.get()), "recording a graph");
}

Status Session::Record(RecordedPass& pass) {
  const char* what = "recording a graph";
  ATTENDANT_CUDA_TRY(
      Check(cudaStreamBeginCapture(compute_.get(), cudaStreamCaptureModeThreadLocal), what));
  Status issued = CopyBlock(LayoutOf(pass.size.rows).bytes);
  if (issued.ok()) issued = pass_->Issue(pass.size, compute_.get(), nullptr);
  // Recording ends whatever happened.
  cudaGraph_t recorded = nullptr;
  const Status ended = Check(cudaStreamEndCapture(compute_.get(), &recorded), what);
  const Graph graph(recorded);
  ATTENDANT_CUDA_TRY(issued);
  ATTENDANT_CUDA_TRY(ended);
  cudaGraphExec_t executable = nullptr;
  ATTENDANT_CUDA_TRY(Check(cudaGraphInstantiate(&executable, graph.get(), 0), what));
  pass.graph.reset(executable);
  return Check(cudaGraphUpload(executable, compute_.get()), what);
}

Status Session::Run(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
                    AttendantCudaOutputs& outputs) {
  outputs = {};
  if (spec.sequences == nullptr) {
    return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "spec.sequences is null");
  }
  if (lost_) return Status::Error(ATTENDANT_CUDA_DEVICE_LOST, "the device was lost earlier");
  if (batch.tokens <= 0 || batch.tokens > limits_.max_batch_tokens || batch.batch <= 0 ||
      batch.batch > std::min(batch.tokens, limits_.max_batch_sequences)) {
    return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT,
                         "a batch of %lld tokens in %lld sequences, the limits are %lld and %lld",
                         static_cast<long long>(batch.tokens), static_cast<long long>(batch.batch),
                         static_cast<long long>(limits_.max_batch_tokens),
                         static_cast<long long>(limits_.max_batch_sequences));
  }
  const ProfilerRange range("attendant: run");
  Status status = UseDevice(model_.device());
  if (status.ok()) status = Execute(batch, spec, outputs);
  if (!status.ok()) {
    outputs = {};
    status = Recover(status);
  }
  return status;
}

Status Session::Execute(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
                        AttendantCudaOutputs& outputs) {
  const bool sampled = sampler_.Takes(ProfileSampler::Clock::now());
  ATTENDANT_CUDA_TRY(Check(cudaEventRecord(begin_.get(), compute_.get()), "beginning a run"));
  ATTENDANT_CUDA_TRY(Compute(batch, spec, sampled));
  ATTENDANT_CUDA_TRY(CopyOutputs(batch, spec, outputs));
  if (sampled) {
    ATTENDANT_CUDA_TRY(timer_.Mark(ATTENDANT_CUDA_GROUP_OUTPUT, compute_.get()));
  }
  ATTENDANT_CUDA_TRY(Check(cudaEventRecord(end_.get(), compute_.get()), "ending a run"));
  ATTENDANT_CUDA_TRY(pipe_.Finish(compute_.get()));
  ATTENDANT_CUDA_TRY(Check(cudaEventSynchronize(end_.get()), "a run"));
  return Account(sampled);
}

Status Session::Compute(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
                        bool sampled) {
  const int64_t rows = BucketTokens(batch.tokens);
  const BatchLayout layout = LayoutOf(rows);
  const BatchCounts counts =
      WriteBatch(batch, spec.sequences, model_.config().hidden, layout, pinned_.block);
  const PassSize size{.rows = rows,
                      .tokens = counts.tokens,
                      .sequences = counts.sequences,
                      .attention_tasks = counts.attention_tasks};
  const bool wants_layers = WantsLayers(spec, batch.batch);
  if (!wants_layers && !sampled) {
    if (const RecordedPass* pass = FindGraph(size); pass != nullptr) {
      return Check(cudaGraphLaunch(pass->graph.get(), compute_.get()), "launching a graph");
    }
  }
  // Only as much as there is; the parts' places stay.
  if (sampled) ATTENDANT_CUDA_TRY(timer_.Begin(compute_.get()));
  ATTENDANT_CUDA_TRY(
      CopyBlock(layout.pool_tasks + batch.batch * static_cast<int64_t>(sizeof(PoolTask))));
  if (!wants_layers && !sampled) return pass_->Issue(size, compute_.get(), nullptr);
  SessionObserver observer(
      {.model = model_,
       .buffers = device_,
       .batch = batch,
       .positions = reinterpret_cast<const int32_t*>(device_.block + layout.positions),
       .layers = wants_layers ? spec.layers : nullptr,
       .pipe = pipe_,
       .timer = sampled ? &timer_ : nullptr,
       .stream = compute_.get()});
  return pass_->Issue(size, compute_.get(), &observer);
}

BatchLayout Session::LayoutOf(int64_t rows) const {
  return LayOutBatch(rows, limits_.max_batch_sequences, model_.config().scales_tokens != 0);
}

Status Session::CopyBlock(int64_t bytes) {
  return Check(cudaMemcpyAsync(device_.block, pinned_.block, static_cast<size_t>(bytes),
                               cudaMemcpyHostToDevice, compute_.get()),
               "copying the batch");
}

// Of the token states, those from the first to the last sequence that asks for them.
Status Session::CopyOutputs(const AttendantCudaBatch& batch, const AttendantCudaOutputSpec& spec,
                            AttendantCudaOutputs& outputs) {
  const int64_t hidden = model_.config().hidden;
  int64_t begin = -1, end = 0;
  bool any_pooled = false;
  for (int64_t i = 0; i < batch.batch; ++i) {
    any_pooled |= spec.sequences[i].pooling != ATTENDANT_CUDA_POOL_NONE;
    if (spec.sequences[i].last_hidden_state == 0) continue;
    if (begin < 0) begin = batch.seq_starts[i];
    end = batch.seq_starts[i + 1];
  }
  const auto copy = [&](float* to, const float* from, int64_t floats) {
    return Check(cudaMemcpyAsync(to, from, static_cast<size_t>(floats) * sizeof(float),
                                 cudaMemcpyDeviceToHost, compute_.get()),
                 "copying results");
  };
  if (any_pooled) {
    ATTENDANT_CUDA_TRY(copy(pinned_.pooled, device_.pooled, batch.batch * hidden));
  }
  outputs.pooled = pinned_.pooled;
  if (begin < 0) return {};
  const int64_t offset = begin * hidden;
  ATTENDANT_CUDA_TRY(
      Check(LaunchToFloat(model_.states(), device_.states + offset * StateBytes(model_.dtype()),
                          device_.last_hidden + offset, end - begin, hidden, compute_.get()),
            "converting states"));
  ATTENDANT_CUDA_TRY(
      copy(pinned_.last_hidden + offset, device_.last_hidden + offset, (end - begin) * hidden));
  outputs.last_hidden_state = pinned_.last_hidden;
  return {};
}

Status Session::Account(bool sampled) {
  float milliseconds = 0;
  ATTENDANT_CUDA_TRY(
      Check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "timing a run"));
  const std::lock_guard lock(profile_mutex_);
  profile_.busy_seconds += 1e-3 * static_cast<double>(milliseconds);
  if (!sampled) return {};
  ATTENDANT_CUDA_TRY(timer_.AddTo(profile_.group_seconds));
  ++profile_.sampled_runs;
  return {};
}

Status Session::Recover(const Status& error) {
  const Status drained = Check(cudaStreamSynchronize(compute_.get()), "after a failed run");
  pipe_.Abandon();
  cudaGetLastError();
  const bool lost_since = drained.code() == ATTENDANT_CUDA_DEVICE_LOST;
  lost_ = lost_since || error.code() == ATTENDANT_CUDA_DEVICE_LOST;
  return lost_since ? drained : error;
}

const Session::RecordedPass* Session::FindGraph(const PassSize& size) const {
  for (const RecordedPass& pass : graphs_) {
    if (pass.size.rows == size.rows) {
      return size.sequences <= pass.size.sequences ? &pass : nullptr;
    }
  }
  return nullptr;
}

AttendantCudaProfile Session::profile() const {
  const std::lock_guard lock(profile_mutex_);
  return profile_;
}

}  // namespace attendant::cuda
