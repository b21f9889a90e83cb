// SPDX-License-Identifier: Apache-2.0
// How long a checkpoint takes to load from a warm page cache, and what the process holds then; each
// load is a process of its own.
//   ready = read (map and check the files) + prepare (pack) + session (allocate, compile, run once)
//   resident  the whole process        arena    the session's memory
//   held      the weights as kept
//   weights   all parameters at the width of the format       ratio  (resident - arena) / weights
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_split.h"
#include "kernels/backends/backends.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/core/threads/cpu_budget.h"
#include "kernels/io/tensor_store.h"
#include "tests/bench/timing.h"
#include "tests/support/checkpoint.h"

ABSL_FLAG(std::string, model, "", "checkpoint folder; empty: BERT-base, random, for this run");
ABSL_FLAG(std::string, dtypes, "f32,bf16,int8", "formats to load");
ABSL_FLAG(int, threads, 0, "0: what this process may use");
ABSL_FLAG(int, max_batch_tokens, 1024, "token budget of the session's batches");
ABSL_FLAG(int, rounds, 3, "loads of each format; the fastest is shown, and the largest memory");

namespace attendant::bench {
namespace {

constexpr double kMiB = 1 << 20;
constexpr int64_t kBatchSequences = 256;
constexpr EncoderConfig kBertBase{.layers = 12,
                                  .heads = 12,
                                  .hidden = 768,
                                  .ffn = 3072,
                                  .vocab = 30522,
                                  .max_positions = 512,
                                  .segment_types = 2,
                                  .layer_norm_epsilon = 1e-12f};

struct Load {
  double read_seconds = 0, prepare_seconds = 0, session_seconds = 0;
  double resident_bytes = 0, arena_bytes = 0;
  double held_bytes = 0;     // by the prepared weights
  double nominal_bytes = 0;  // parameters, at the width of the format

  double seconds() const { return read_seconds + prepare_seconds + session_seconds; }
  double ratio() const { return (resident_bytes - arena_bytes) / nominal_bytes; }
};

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status());
  return *std::move(value);
}

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double Parameters(const std::string& directory) {
  const auto store = OrDie(TensorStore::Open(directory));
  double sum = 0;
  for (const auto& [name, tensor] : store->tensors()) {
    double values = 1;
    for (const int64_t dim : tensor->dims) values *= static_cast<double>(dim);
    sum += values;
  }
  return sum;
}

// What a server does before it says that it is ready.
Load LoadOnce(const std::string& directory, const std::string& dtype_name, int threads) {
  Load load;
  const double begin = Now();
  auto backend = OrDie(MakeBackend("cpu", {.load_threads = threads}));
  const DType dtype = OrDie(ChooseDType(dtype_name, *backend));
  Checkpoint checkpoint = OrDie(LoadCheckpoint(directory));
  const double read = Now();
  auto encoder = OrDie(backend->Prepare(checkpoint.config, std::move(checkpoint.weights), dtype));
  const double prepared = Now();
  auto session =
      OrDie(encoder->NewSession({.max_batch_tokens = absl::GetFlag(FLAGS_max_batch_tokens),
                                 .max_batch_sequences = kBatchSequences},
                                threads));
  const std::vector<int32_t> zero(1);
  PackedBatch batch;
  batch.Append(zero, zero, zero);
  const SequenceOutputs wanted{.pooling = Pooling::kMean};
  Outputs outputs;
  if (absl::Status status = session->Run(batch, {{&wanted, 1}}, outputs); !status.ok()) Die(status);
  load.session_seconds = Now() - prepared;
  malloc_trim(0);
  load.read_seconds = read - begin;
  load.prepare_seconds = prepared - read;
  load.resident_bytes = ResidentBytes();
  load.arena_bytes = static_cast<double>(session->arena_bytes());
  load.held_bytes = static_cast<double>(encoder->info().weight_bytes);
  load.nominal_bytes = Parameters(directory) * (dtype == DType::kF32    ? 4
                                                : dtype == DType::kBf16 ? 2
                                                                        : 1);
  return load;
}

// In a process of its own: what one load leaves in the allocator does not count for the next.
Load LoadInChild(const std::string& directory, const std::string& dtype, int threads) {
  int ends[2];
  if (pipe(ends) != 0) Die(absl::InternalError("pipe"));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const Load load = LoadOnce(directory, dtype, threads);
    const bool written = write(ends[1], &load, sizeof(load)) == sizeof(load);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Load load;
  const bool whole = read(ends[0], &load, sizeof(load)) == sizeof(load);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole || status != 0) Die(absl::InternalError("loading failed, see above"));
  return load;
}

void PrintRow(const std::string& dtype, const std::vector<Load>& loads) {
  Load best = loads.front();
  for (const Load& load : loads) {
    const double resident = std::max(best.resident_bytes, load.resident_bytes);
    if (load.seconds() < best.seconds()) best = load;
    best.resident_bytes = resident;
  }
  std::printf("%-6s %8.2f %8.2f %8.2f %8.2f %10.1f %8.1f %8.1f %8.1f %8.2f\n", dtype.c_str(),
              best.seconds(), best.read_seconds, best.prepare_seconds, best.session_seconds,
              best.resident_bytes / kMiB, best.arena_bytes / kMiB, best.held_bytes / kMiB,
              best.nominal_bytes / kMiB, best.ratio());
}

void Main() {
  const int given = absl::GetFlag(FLAGS_threads);
  const int threads = given == 0 ? ReadCpuBudget().threads : given;
  TempDirectory directory;
  std::string model = absl::GetFlag(FLAGS_model);
  if (model.empty()) {
    model = directory.path();
    WriteCheckpoint(model, kBertBase, 1);
    malloc_trim(0);  // the children would count it as theirs
  }
  std::printf("%d threads; seconds, and MiB\n\n%-6s %8s %8s %8s %8s %10s %8s %8s %8s %8s\n",
              threads, "dtype", "ready", "read", "prepare", "session", "resident", "arena", "held",
              "weights", "ratio");
  const std::vector<std::string> dtypes = absl::StrSplit(absl::GetFlag(FLAGS_dtypes), ',');
  for (const std::string& dtype : dtypes) {
    std::vector<Load> loads;
    for (int i = 0; i < absl::GetFlag(FLAGS_rounds); ++i) {
      loads.push_back(LoadInChild(model, dtype, threads));
    }
    PrintRow(dtype, loads);
  }
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures how fast a checkpoint loads, and what it takes.");
  absl::ParseCommandLine(argc, argv);
  attendant::bench::Main();
}
