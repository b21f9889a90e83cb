// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"

namespace attendant {

// A tensor to write, its bytes given or made.
struct TestTensor {
  std::string name;
  std::string dtype = "F32";
  std::vector<int64_t> dims;
  std::string data;
};

TestTensor FloatTensor(const std::string& name, const std::vector<int64_t>& dims,
                       const std::vector<float>& values);

// A safetensors file's bytes: the tensors in the order given.
std::string SafetensorsBytes(const std::vector<TestTensor>& tensors);
// The same, with the header's JSON given as it is.
std::string SafetensorsBytes(const std::string& header, const std::string& data);

// How random values lie, with the same variance: all equally likely up to a largest one, or as in
// trained checkpoints, few of them far out.
enum class Spread { kUniform, kBell };

// A BERT checkpoint's tensors with today's names and random values: the same seed, the same values.
std::vector<TestTensor> RandomTensors(const EncoderConfig& config, uint32_t seed);
// The same values in memory.
EncoderWeights RandomWeights(const EncoderConfig& config, uint32_t seed,
                             Spread spread = Spread::kUniform);

std::string ConfigJson(const EncoderConfig& config);

void WriteFile(const std::string& path, const std::string& bytes);
// config.json and model.safetensors.
void WriteCheckpoint(const std::string& directory, const EncoderConfig& config, uint32_t seed);

// A folder of its own below the system's temporary one, removed with all its contents at the end.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace attendant
