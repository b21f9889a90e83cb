// SPDX-License-Identifier: Apache-2.0
// Checks a CUDA library on the machine's GPU, without a test framework:
//
//   cuda_check LIBRARY [--quick]
//
// Encoders with random weights against plain loops in every format that the device has, the same
// bits for every batch, layers' insides. One line a check, PASS or FAIL; the exit code is 1 when
// one failed, 2 when there is nothing to check. --quick leaves out what takes an emulation long.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/support/cuda/device_run.h"

namespace attendant::cuda_test {
namespace {

constexpr const char* kDTypeNames[] = {"f32", "bf16", "f16", "fp8"};
// 1 - cosine of embeddings to plain loops'. For bf16 that is the project's mark.
constexpr double kCosineDistance[] = {1e-6, 5e-4, 2e-5, 2e-2};
// Of attention weights, which are at most 1, and of states, whose size is about 1.
constexpr double kWeightDifference[] = {2e-5, 3e-2, 3e-3, 0.2};
constexpr double kStateDifference[] = {1e-4, 0.15, 2e-2, 1.0};

class Checks {
 public:
  void Expect(bool passed, const std::string& what) {
    std::printf("%s  %s\n", passed ? "PASS" : "FAIL", what.c_str());
    std::fflush(stdout);
    failed_ |= !passed;
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

struct Case {
  std::string name;
  AttendantCudaConfig config;
  std::vector<int64_t> lens;
  Parts parts{};
  Holes holes{};
};

AttendantCudaConfig MiniLmConfig() {
  AttendantCudaConfig config = SmallConfig();
  config.layers = 6;
  config.heads = 12;
  config.hidden = 384;
  config.ffn = 1536;
  config.vocab = 1000;
  config.max_positions = 512;
  return config;
}

std::vector<Case> ListCases(bool quick) {
  AttendantCudaConfig small = SmallConfig();
  std::vector<Case> cases = {{"2 x 64, head_dim 32, erf GELU", small, {1, 17, 64, 65, 5}, {}, {}}};
  small.activation = ATTENDANT_CUDA_GELU_TANH;
  small.heads = 1;
  cases.push_back({"2 x 64, head_dim 64, tanh GELU", small, {33, 2, 128}, {}, {}});
  AttendantCudaConfig wide = SmallConfig();
  wide.hidden = 128;
  wide.heads = 1;
  wide.activation = ATTENDANT_CUDA_RELU;
  cases.push_back({"2 x 128, head_dim 128, ReLU", wide, {63, 100}, {}, {}});
  for (const Variant& variant : ListVariants()) {
    std::vector<int64_t> lens = {1, 70, 33, 5};
    if (!quick) lens.insert(lens.end(), {130, 200, 64});
    cases.push_back({variant.name, variant.config, lens, variant.parts, variant.holes});
  }
  if (!quick)
    cases.push_back({"MiniLM's size", MiniLmConfig(), {1, 16, 128, 129, 300, 48, 7}, {}, {}});
  return cases;
}

void CheckAnswers(const Case& a_case, const std::string& name, int32_t dtype,
                  const PackedSequences& batch, const RunResults& results,
                  const PlainResults& plain, Checks& checks) {
  const int64_t hidden = a_case.config.hidden;
  double distance = 0;
  for (int64_t i = 0; i < batch.batch(); ++i) {
    const std::vector<float> mean =
        PlainMean(plain.states.back(), batch.start(i), batch.start(i + 1), hidden);
    distance =
        std::max(distance, CosineDistance(results.pooled.data() + i * hidden, mean.data(), hidden));
  }
  checks.Expect(distance <= kCosineDistance[dtype],
                name + ": embeddings, 1 - cosine " + std::to_string(distance));
  const double difference = LargestDifference(results.last_hidden_state.data(),
                                              plain.states.back().data(), batch.tokens() * hidden);
  checks.Expect(difference <= kStateDifference[dtype],
                name + ": states differ by " + std::to_string(difference));
}

void CheckInside(const Case& a_case, const std::string& name, int32_t dtype,
                 const PackedSequences& batch, const Inside& inside, const RunResults& results,
                 const PlainResults& plain, Checks& checks) {
  const int64_t hidden = a_case.config.hidden;
  double states = 0, weights = 0;
  int64_t weights_begin = 0;
  for (int64_t i = 0; i < batch.batch(); ++i) {
    const auto index = static_cast<size_t>(i);
    const int64_t len = batch.len(i);
    states = std::max(
        states,
        LargestDifference(results.hidden_states[index].data(),
                          plain.states[static_cast<size_t>(inside.hidden_layers[0])].data() +
                              batch.start(i) * hidden,
                          len * hidden));
    const std::vector<float>& layer =
        plain.attention_weights[static_cast<size_t>(inside.attention_layers[0])];
    weights = std::max(weights, LargestDifference(results.attention_weights[index].data(),
                                                  layer.data() + weights_begin +
                                                      inside.attention_heads[0] * len * len,
                                                  len * len));
    weights_begin += a_case.config.heads * len * len;
  }
  checks.Expect(states <= kStateDifference[dtype],
                name + ": a layer's states differ by " + std::to_string(states));
  checks.Expect(weights <= kWeightDifference[dtype],
                name + ": attention weights differ by " + std::to_string(weights));
}

// Each sequence alone gives the bits that it has in the batch; so does the batch once more.
void CheckInvariance(const AttendantCudaInterface& interface, AttendantCudaSession* session,
                     const Case& a_case, const std::string& name, const PackedSequences& batch,
                     const RunResults& results, Checks& checks) {
  const int64_t hidden = a_case.config.hidden;
  bool same = true;
  for (int64_t i = 0; i < batch.batch() && same; ++i) {
    const PackedSequences one = RandomBatch(a_case.config, {a_case.lens[static_cast<size_t>(i)]},
                                            1 + static_cast<uint32_t>(i), a_case.holes);
    const RunResults alone = RunAll(interface, session, a_case.config, one);
    same =
        alone.status.code == ATTENDANT_CUDA_OK &&
        std::equal(alone.last_hidden_state.begin(), alone.last_hidden_state.end(),
                   results.last_hidden_state.begin() + batch.start(i) * hidden) &&
        std::equal(alone.pooled.begin(), alone.pooled.end(), results.pooled.begin() + i * hidden);
  }
  checks.Expect(same, name + ": alone as batched, bit for bit");
  const RunResults again = RunAll(interface, session, a_case.config, batch);
  checks.Expect(
      again.last_hidden_state == results.last_hidden_state && again.pooled == results.pooled,
      name + ": once more, bit for bit");
}

void CheckCase(const AttendantCudaInterface& interface, const Case& a_case, int32_t dtype,
               Checks& checks) {
  const std::string name = a_case.name + ", " + kDTypeNames[dtype];
  const RandomEncoder encoder(a_case.config, 7, a_case.parts);
  ModelPointer model(nullptr, {&interface});
  SessionPointer session(nullptr, {&interface});
  const PackedSequences batch = RandomBatch(a_case.config, a_case.lens, 1, a_case.holes);
  AttendantCudaStatus status = MakeModel(interface, 0, encoder, dtype, model);
  if (status.code == ATTENDANT_CUDA_OK) {
    status = MakeSession(interface, model.get(), batch.tokens() + 100, 32, session);
  }
  if (status.code != ATTENDANT_CUDA_OK) {
    checks.Expect(false, name + ": " + Describe(status));
    return;
  }
  const RunResults results = RunAll(interface, session.get(), a_case.config, batch);
  const Inside inside{.attention_layers = {1}, .attention_heads = {0}, .hidden_layers = {1}};
  const RunResults looked = RunAll(interface, session.get(), a_case.config, batch, inside);
  if (results.status.code != ATTENDANT_CUDA_OK || looked.status.code != ATTENDANT_CUDA_OK) {
    checks.Expect(false, name + ": " + Describe(results.status) + ", " + Describe(looked.status));
    return;
  }
  const PlainResults plain = RunPlain(encoder, batch);
  CheckAnswers(a_case, name, dtype, batch, results, plain, checks);
  CheckInside(a_case, name, dtype, batch, inside, looked, plain, checks);
  checks.Expect(looked.last_hidden_state == results.last_hidden_state,
                name + ": looking inside changes nothing");
  CheckInvariance(interface, session.get(), a_case, name, batch, results, checks);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cuda_check LIBRARY [--quick]\n");
    return 2;
  }
  const bool quick = argc > 2 && std::strcmp(argv[2], "--quick") == 0;
  const AttendantCudaInterface* interface = LoadInterface(argv[1]);
  if (interface == nullptr) return 2;
  AttendantCudaDevice device{};
  const AttendantCudaStatus status = DescribeFirstDevice(*interface, device);
  if (status.code != ATTENDANT_CUDA_OK) {
    std::fprintf(stderr, "%s: %s\n", interface->build, Describe(status).c_str());
    return 2;
  }
  std::printf("%s on %s, compute capability %d.%d\n", interface->build, device.name,
              device.compute_capability / 10, device.compute_capability % 10);
  Checks checks;
  for (const Case& a_case : ListCases(quick)) {
    for (int32_t dtype = ATTENDANT_CUDA_F32; dtype <= ATTENDANT_CUDA_FP8; ++dtype) {
      if ((device.dtypes >> dtype & 1) == 0) {
        std::printf("SKIP  %s, %s: the device lacks it\n", a_case.name.c_str(), kDTypeNames[dtype]);
        continue;
      }
      CheckCase(*interface, a_case, dtype, checks);
    }
  }
  std::printf(checks.failed() ? "FAILED\n" : "all passed\n");
  return checks.failed() ? 1 : 0;
}

}  // namespace
}  // namespace attendant::cuda_test

int main(int argc, char** argv) { return attendant::cuda_test::Main(argc, argv); }
