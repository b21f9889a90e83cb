// SPDX-License-Identifier: Apache-2.0
// What happens to rows between matmuls, a block of rows at a time as in the engine, and what
// begins and ends a model: embedding and pooling. Parameters that all rows share (bias, gamma, …)
// lie in the first level of cache and are not counted.
#include <cstring>
#include <random>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/pooling.h"
#include "kernels/cpu/encoder/cpu_encoder.h"
#include "tests/bench/kernels/bound.h"
#include "tests/bench/kernels/memory_pass.h"
#include "tests/bench/kernels/models.h"

namespace attendant::bench {
namespace {

constexpr int64_t kRows = cpu::kMaxBlockRows;
constexpr int64_t kVocab = 30522;
constexpr int64_t kPoolLen = 48;

int64_t Bytes(DType dtype) { return dtype == DType::kF32 ? 4 : dtype == DType::kBf16 ? 2 : 1; }

std::vector<float> Random(int64_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// A block of rows with everything that the kernels read and write.
class Block {
 public:
  Block(DType dtype, int64_t row_columns)
      : columns(row_columns),
        matmul_out_(Random(kRows * columns)),
        states_(Random(kRows * columns)),
        operand_(static_cast<size_t>(kRows * columns * 4)),
        quantizations_(static_cast<size_t>(kRows), {0.03f, 117}),
        column_scales_(static_cast<size_t>(columns), 0.001f),
        column_offsets_(static_cast<size_t>(columns), 0.1f),
        shared_(Random(columns)),
        scratch_(static_cast<size_t>(columns)),
        operand_row_bytes_(columns * Bytes(dtype)) {
    if (dtype != DType::kInt8) return;
    for (float& value : matmul_out_) {
      const auto sum = static_cast<int32_t>(value * 30000);
      std::memcpy(&value, &sum, sizeof(sum));
    }
  }

  cpu::MatmulRow matmul_row(int64_t row) const {
    return {matmul_out_.data() + row * columns, &quantizations_[static_cast<size_t>(row)],
            column_scales_.data(), column_offsets_.data()};
  }
  cpu::OperandRow operand_row(int64_t row) {
    return {operand_.data() + row * operand_row_bytes_, &written_};
  }
  float* states(int64_t row) { return states_.data() + row * columns; }
  const float* shared() const { return shared_.data(); }
  float* scratch() { return scratch_.data(); }
  cpu::LayerNormArgs norm() const { return {shared(), shared(), columns, 1e-12f}; }

  const int64_t columns;

 private:
  std::vector<float> matmul_out_;  // or s32
  std::vector<float> states_;
  std::vector<std::byte> operand_;
  std::vector<cpu::RowQuantization> quantizations_;
  std::vector<float> column_scales_;
  std::vector<float> column_offsets_;
  std::vector<float> shared_;  // bias, gamma and beta
  std::vector<float> scratch_;
  int64_t operand_row_bytes_;
  cpu::RowQuantization written_;
};

void ForEachRow(absl::FunctionRef<void(int64_t)> act) {
  for (int64_t row = 0; row < kRows; ++row) act(row);
}

double BlockBytes(const Block& block, int64_t bytes_per_value) {
  return static_cast<double>(kRows * block.columns * bytes_per_value);
}

// states = LayerNorm(states + matmul + bias), and as operand
void MeasureAddLayerNorm(benchmark::State& state, DType dtype, int64_t columns) {
  Block block(dtype, columns);
  const int64_t written = dtype == DType::kF32 ? 0 : Bytes(dtype);
  const Bound bound = MemoryBound(BlockBytes(block, 4 + 8 + written), [&] {
    ForEachRow([&](int64_t row) {
      ReadBytes(block.matmul_row(row).values, columns * 4);
      ReadAndWriteBytes(block.states(row), columns * 4);
      WriteBytes(block.operand_row(row).values, columns * written);
    });
  });
  Measure(state, bound, [&] {
    ForEachRow([&](int64_t row) {
      BestRowKernels(dtype).add_layer_norm(block.states(row), block.matmul_row(row), block.shared(),
                                           block.norm(), block.operand_row(row));
    });
  });
}

// operand = gelu(matmul + bias)
void MeasureGelu(benchmark::State& state, DType dtype, int64_t columns) {
  Block block(dtype, columns);
  const Bound bound = MemoryBound(BlockBytes(block, 4 + Bytes(dtype)), [&] {
    ForEachRow([&](int64_t row) {
      ReadBytes(block.matmul_row(row).values, columns * 4);
      WriteBytes(block.operand_row(row).values, columns * Bytes(dtype));
    });
  });
  Measure(state, bound, [&] {
    ForEachRow([&](int64_t row) {
      BestRowKernels(dtype).activate.gelu_erf(block.matmul_row(row), block.shared(), columns,
                                              block.scratch(), block.operand_row(row));
    });
  });
}

// operand = states, rounded to bf16 or quantized
void MeasureConvert(benchmark::State& state, DType dtype, int64_t columns) {
  Block block(dtype, columns);
  const Bound bound = MemoryBound(BlockBytes(block, 4 + Bytes(dtype)), [&] {
    ForEachRow([&](int64_t row) {
      ReadBytes(block.states(row), columns * 4);
      WriteBytes(block.operand_row(row).values, columns * Bytes(dtype));
    });
  });
  Measure(state, bound, [&] {
    ForEachRow([&](int64_t row) {
      BestRowKernels(dtype).convert(block.states(row), columns, block.operand_row(row));
    });
  });
}

// qkv = matmul + bias; of 8-bit matmuls only, oneDNN adds the others' biases
void MeasureAddBias(benchmark::State& state, DType dtype, int64_t columns) {
  Block block(dtype, columns);
  std::vector<float> qkv(static_cast<size_t>(kRows * columns));
  const int64_t qkv_bytes = BestRowKernels(dtype).qkv_is_bf16 ? 2 : 4;
  const auto qkv_row = [&](int64_t row) {
    return reinterpret_cast<std::byte*>(qkv.data()) + row * columns * qkv_bytes;
  };
  const Bound bound = MemoryBound(BlockBytes(block, 4 + qkv_bytes), [&] {
    ForEachRow([&](int64_t row) {
      ReadBytes(block.matmul_row(row).values, columns * 4);
      WriteBytes(qkv_row(row), columns * qkv_bytes);
    });
  });
  Measure(state, bound, [&] {
    ForEachRow([&](int64_t row) {
      BestRowKernels(dtype).add_bias(block.matmul_row(row), block.shared(), columns, qkv_row(row));
    });
  });
}

// states = LayerNorm(token + segment + position), the tokens at random from a whole vocabulary
void MeasureEmbed(benchmark::State& state, int64_t hidden) {
  Block block(DType::kF32, hidden);
  Arena arena(kVocab * hidden * 4 + Arena::kAlignment);
  const TensorView<float, 2> table = arena.Allocate2<float>(kVocab, hidden);
  std::mt19937 random(7);
  const auto token_row = [&] { return table.row(static_cast<int64_t>(random() % kVocab)); };
  const Bound bound = MemoryBound(BlockBytes(block, 4 + 4 + 4), [&] {
    ForEachRow([&](int64_t row) {
      ReadBytes(token_row(), hidden * 4);
      ReadBytes(block.matmul_row(row).values, hidden * 4);
      WriteBytes(block.states(row), hidden * 4);
    });
  });
  Measure(state, bound, [&] {
    ForEachRow([&](int64_t row) {
      BestKernels().embed(token_row(), block.shared(),
                          static_cast<const float*>(block.matmul_row(row).values), block.norm(),
                          block.states(row));
    });
  });
}

// mean over a sequence's tokens, normalized
void MeasurePool(benchmark::State& state, int64_t hidden) {
  const std::vector<float> states = Random(kPoolLen * hidden);
  std::vector<float> pooled(static_cast<size_t>(hidden));
  const int64_t num_bytes = kPoolLen * hidden * 4;
  const Bound bound =
      MemoryBound(static_cast<double>(num_bytes), [&] { ReadBytes(states.data(), num_bytes); });
  const SequenceOutputs mean{.pooling = Pooling::kMean, .normalize = true};
  Measure(state, bound, [&] {
    PoolSequence({states.data(), {kPoolLen, hidden}}, mean, pooled.data());
  });
}

}  // namespace

void RegisterRows() {
  using Kernel = void (*)(benchmark::State&, DType, int64_t);
  const auto add = [](const char* name, const ModelShape& model, DType dtype, int64_t columns,
                      Kernel kernel) {
    benchmark::RegisterBenchmark(BenchmarkName(name, model, dtype).c_str(),
                                 [=](benchmark::State& state) { kernel(state, dtype, columns); });
  };
  for (const ModelShape& model : {kMiniLm, kBertBase}) {
    for (DType dtype : FastDTypes()) {
      add("add_layer_norm", model, dtype, model.hidden, MeasureAddLayerNorm);
      add("gelu_erf", model, dtype, model.ffn, MeasureGelu);
      if (dtype != DType::kF32) add("convert", model, dtype, model.hidden, MeasureConvert);
      if (dtype == DType::kInt8) add("add_bias", model, dtype, 3 * model.hidden, MeasureAddBias);
    }
    benchmark::RegisterBenchmark(
        absl::StrCat("embed/", model.name).c_str(),
        [=](benchmark::State& state) { MeasureEmbed(state, model.hidden); });
    benchmark::RegisterBenchmark(
        absl::StrCat("pool/", model.name).c_str(),
        [=](benchmark::State& state) { MeasurePool(state, model.hidden); });
  }
}

}  // namespace attendant::bench
