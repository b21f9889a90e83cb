// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/matmul_probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cuda/model/weight_upload.h"

namespace attendant::cuda {
namespace {

constexpr int kTimedRuns = 5;
// Rows that are compared at both ends of a result, and rows of the result that they are compared
// with.
constexpr int64_t kComparedRows = 256;
constexpr int64_t kReferenceRows = 4096;
constexpr int64_t kPinnedBytes = int64_t{4} << 20;

}  // namespace

Status MatmulProbe::SelectKind(MatmulKind kind) {
  shape_ = model_.shape(kind);
  pinned_bytes_ = std::max(kPinnedBytes, shape_.inputs * operand_bytes());
  ATTENDANT_CUDA_TRY(AllocatePinned(pinned_bytes_, pinned_));
  ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kTiming, begin_));
  ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kTiming, end_));
  DeviceLinear linear;
  const auto place = [&](Carver& carver) {
    linear.weight = carver.Take<std::byte>(shape_.outputs * shape_.inputs * operand_bytes());
    linear.scales = carver.Take<float>(shape_.outputs);
    linear.bias = carver.Take<std::byte>(row_bytes());
  };
  Carver measure;
  place(measure);
  ATTENDANT_CUDA_TRY(AllocateDevice(measure.used_bytes(), linear_));
  Carver carver(linear_.get());
  place(carver);
  if (context_.dtype != DType::kFp8) linear.scales = nullptr;
  args_ = OperandsOf(buffers_, context_.dtype, kind, linear);

  ATTENDANT_CUDA_TRY(FillOperand(shape_.outputs, 1, linear.weight));
  ATTENDANT_CUDA_TRY(FillOperand(rows_, -1, const_cast<void*>(args_.x)));
  if (context_.dtype == DType::kFp8) {
    ATTENDANT_CUDA_TRY(FillScales(shape_.outputs, linear.scales));
    ATTENDANT_CUDA_TRY(FillScales(rows_, buffers_.scales));
  }
  ATTENDANT_CUDA_TRY(
      Check(cudaMemsetAsync(linear.bias, 0, static_cast<size_t>(row_bytes()), stream_),
            "trying a matmul"));
  return Synchronize();
}

float MatmulProbe::NextRandom() {
  random_ = random_ * 1664525u + 1013904223u;
  return static_cast<float>(random_ >> 8) * 0x1p-23f - 1.0f;
}

// e4m3 has room for these and no more.
float MatmulProbe::NextSpread() {
  const int exponent = static_cast<int>(8 * NextRandom());
  return std::ldexp(NextRandom(), exponent);
}

Status MatmulProbe::Send(std::byte* device, int64_t bytes) {
  return Check(cudaMemcpyAsync(device, pinned_.get(), static_cast<size_t>(bytes),
                               cudaMemcpyHostToDevice, stream_),
               "trying a matmul");
}

// As many rows as fit the pinned memory, again and again.
Status MatmulProbe::FillOperand(int64_t rows, float sign, void* device) {
  const int64_t bytes = shape_.inputs * operand_bytes();
  const int64_t piece = std::min(rows, pinned_bytes_ / bytes);
  std::vector<float> row(static_cast<size_t>(shape_.inputs));
  const size_t half = row.size() / 2;
  for (int64_t i = 0; i < piece; ++i) {
    for (size_t k = 0; k < half; ++k) {
      row[k] = NextSpread();
      row[k + half] = sign * row[k];
    }
    std::byte* to = pinned_.get() + i * bytes;
    if (context_.dtype == DType::kFp8) {
      QuantizeToE4m3(row.data(), shape_.inputs, 1, reinterpret_cast<uint8_t*>(to));
    } else {
      ConvertToStates(context_.dtype, row.data(), shape_.inputs, to);
    }
  }
  for (int64_t begin = 0; begin < rows; begin += piece) {
    ATTENDANT_CUDA_TRY(Send(static_cast<std::byte*>(device) + begin * bytes,
                            std::min(piece, rows - begin) * bytes));
  }
  return Synchronize();
}

Status MatmulProbe::FillScales(int64_t count, void* device) {
  const int64_t piece = pinned_bytes_ / static_cast<int64_t>(sizeof(float));
  auto* scales = reinterpret_cast<float*>(pinned_.get());
  for (int64_t begin = 0; begin < count; begin += piece) {
    const int64_t values = std::min(piece, count - begin);
    std::generate_n(scales, values, [&] { return 1 + 0.5f * NextRandom(); });
    ATTENDANT_CUDA_TRY(Send(static_cast<std::byte*>(device) + begin * 4, values * 4));
    ATTENDANT_CUDA_TRY(Synchronize());
  }
  return {};
}

Status MatmulProbe::Read(int64_t begin, int64_t bytes, std::byte* to) {
  const auto* from = static_cast<const std::byte*>(args_.out) + begin;
  for (int64_t at = 0; at < bytes; at += pinned_bytes_) {
    const auto piece = static_cast<size_t>(std::min(pinned_bytes_, bytes - at));
    ATTENDANT_CUDA_TRY(
        Check(cudaMemcpyAsync(pinned_.get(), from + at, piece, cudaMemcpyDeviceToHost, stream_),
              "trying a matmul"));
    ATTENDANT_CUDA_TRY(Synchronize());
    std::memcpy(to + at, pinned_.get(), piece);
  }
  return {};
}

Status MatmulProbe::SetReference(const cublasLtMatmulAlgo_t& algorithm) {
  ATTENDANT_CUDA_TRY(Run(algorithm, rows_));
  reference_.resize(static_cast<size_t>(std::min(rows_, kReferenceRows) * row_bytes()));
  return Read(0, static_cast<int64_t>(reference_.size()), reference_.data());
}

Status MatmulProbe::CompareRows(int64_t begin, int64_t end, bool& same) {
  std::vector<std::byte> rows(static_cast<size_t>((end - begin) * row_bytes()));
  ATTENDANT_CUDA_TRY(Read(begin * row_bytes(), static_cast<int64_t>(rows.size()), rows.data()));
  same = std::equal(rows.begin(), rows.end(), reference_.begin() + begin * row_bytes());
  return {};
}

Status MatmulProbe::HasSameBits(const cublasLtMatmulAlgo_t& algorithm, int64_t rows, bool& same) {
  ATTENDANT_CUDA_TRY(Run(algorithm, rows));
  const int64_t known = std::min(rows, kReferenceRows);
  const int64_t first = std::min(known, kComparedRows);
  ATTENDANT_CUDA_TRY(CompareRows(0, first, same));
  const int64_t last = std::max(first, known - kComparedRows);
  if (!same || last == known) return {};
  return CompareRows(last, known, same);
}

Status MatmulProbe::SuitsClass(const cublasLtMatmulAlgo_t& algorithm, int row_class, bool& suits) {
  for (const int64_t rows : {SmallestOfClass(row_class), most_of_class(row_class)}) {
    ATTENDANT_CUDA_TRY(Accepts(context_, shape_, rows, algorithm, suits));
    if (!suits) return {};
    ATTENDANT_CUDA_TRY(HasSameBits(algorithm, rows, suits));
    if (!suits) return {};
  }
  return {};
}

// The best of a few: others may use the device.
Status MatmulProbe::Time(const cublasLtMatmulAlgo_t& algorithm, int64_t rows, float& milliseconds) {
  milliseconds = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kTimedRuns; ++i) {
    float once = 0;
    ATTENDANT_CUDA_TRY(Check(cudaEventRecord(begin_.get(), stream_), "timing a matmul"));
    ATTENDANT_CUDA_TRY(Run(algorithm, rows));
    ATTENDANT_CUDA_TRY(Check(cudaEventRecord(end_.get(), stream_), "timing a matmul"));
    ATTENDANT_CUDA_TRY(Check(cudaEventSynchronize(end_.get()), "timing a matmul"));
    ATTENDANT_CUDA_TRY(
        Check(cudaEventElapsedTime(&once, begin_.get(), end_.get()), "timing a matmul"));
    milliseconds = std::min(milliseconds, once);
  }
  return {};
}

}  // namespace attendant::cuda
