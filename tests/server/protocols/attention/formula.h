// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attendant/v1/encoder.pb.h"

// Attention by its formulas: plain loops in double over small matrices.
namespace attendant {

inline constexpr int kLen = 5;
inline constexpr int kDim = 4;
inline constexpr double kHidden = -std::numeric_limits<double>::infinity();

// [rows, columns]
class Matrix {
 public:
  Matrix(int rows, int columns)
      : rows_(rows), columns_(columns), values_(static_cast<size_t>(rows * columns)) {}

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  double& at(int row, int column) { return values_[static_cast<size_t>(row * columns_ + column)]; }
  double at(int row, int column) const { return const_cast<Matrix&>(*this).at(row, column); }
  std::vector<float> Flat() const { return {values_.begin(), values_.end()}; }

 private:
  int rows_;
  int columns_;
  std::vector<double> values_;
};

// A row of a matrix.
struct Row {
  const Matrix& matrix;
  int row;
  double operator[](int column) const { return matrix.at(row, column); }
};

// Numbers from -1 to 1 that f32 holds exactly, others for each seed.
inline Matrix Numbers(int rows, int columns, int seed) {
  Matrix numbers(rows, columns);
  for (int i = 0; i < rows * columns; ++i) {
    numbers.at(i / columns, i % columns) = static_cast<double>((i * 37 + seed * 53) % 65 - 32) / 32;
  }
  return numbers;
}

inline Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows(), b.columns());
  for (int i = 0; i < a.rows(); ++i) {
    for (int j = 0; j < b.columns(); ++j) {
      for (int n = 0; n < a.columns(); ++n) product.at(i, j) += a.at(i, n) * b.at(n, j);
    }
  }
  return product;
}

inline void Set(v1::Tensor& tensor, const std::vector<int64_t>& shape,
                const std::vector<float>& values) {
  tensor.set_dtype(v1::DTYPE_F32);
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  tensor.set_data(values.data(), values.size() * sizeof(float));
}
inline void Set(v1::Tensor& tensor, const Matrix& matrix) {
  Set(tensor, {matrix.rows(), matrix.columns()}, matrix.Flat());
}
inline void SetVector(v1::Tensor& tensor, const Matrix& matrix) {
  Set(tensor, {matrix.columns()}, matrix.Flat());
}
inline void SetBools(v1::Tensor& tensor, const std::vector<int64_t>& shape,
                     const std::string& bits) {
  tensor.set_dtype(v1::DTYPE_BOOL);
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  for (const char bit : bits) tensor.mutable_data()->push_back(bit == '1' ? '\1' : '\0');
}

inline double Dot(const Row& a, const Row& b) {
  double sum = 0;
  for (int d = 0; d < kDim; ++d) sum += a[d] * b[d];
  return sum;
}

// The attention of one head of one sequence. Each case changes some of it.
struct Formula {
  Matrix queries = Numbers(kLen, kDim, 1);
  Matrix keys = Numbers(kLen, kDim, 2);
  Matrix values = Numbers(kLen, kDim, 3);
  // Of a query and a key, before what `add` adds.
  std::function<double(const Row& query, const Row& key)> score = [](const Row& q, const Row& k) {
    return Dot(q, k) / std::sqrt(kDim);
  };
  std::function<double(int query, int key)> add = [](int, int) { return 0.0; };
  bool softmax = true;  // else the scores themselves, divided by their sum

  Matrix Weights() const {
    Matrix weights(queries.rows(), keys.rows());
    for (int i = 0; i < weights.rows(); ++i) {
      double sum = 0;
      for (int j = 0; j < weights.columns(); ++j) {
        const double scored = score({queries, i}, {keys, j});
        double& weight = weights.at(i, j);
        weight = softmax ? std::exp(scored + add(i, j)) : (add(i, j) == kHidden ? 0 : scored);
        sum += weight;
      }
      for (int j = 0; j < weights.columns(); ++j) weights.at(i, j) /= sum > 0 ? sum : 1;
    }
    return weights;
  }
  Matrix Output() const { return Product(Weights(), values); }
};

// 0 where a query may see a key.
inline std::function<double(int, int)> Sees(const std::function<bool(int, int)>& may) {
  return [may](int i, int j) { return may(i, j) ? 0.0 : kHidden; };
}

inline void AddTable(Matrix& rows, const std::function<double(int, int)>& table) {
  for (int p = 0; p < rows.rows(); ++p) {
    for (int d = 0; d < kDim; ++d) rows.at(p, d) += table(p, d);
  }
}

inline double Learned(int position, int column) { return Numbers(7, kDim, 5).at(position, column); }

inline std::function<double(int, int)> Sinusoid(double base) {
  return [base](int p, int d) {
    const double angle = p / std::pow(base, static_cast<double>(d / 2 * 2) / kDim);
    return d % 2 == 0 ? std::sin(angle) : std::cos(angle);
  };
}

// Turns pair p of every row: dims (2p, 2p + 1), or (p, p + kDim / 2).
inline void Turn(Matrix& rows, double base, bool neighbours) {
  for (int p = 0; p < rows.rows(); ++p) {
    for (int pair = 0; pair < kDim / 2; ++pair) {
      const double angle = p / std::pow(base, 2.0 * pair / kDim);
      double& a = rows.at(p, neighbours ? 2 * pair : pair);
      double& b = rows.at(p, neighbours ? 2 * pair + 1 : pair + kDim / 2);
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

inline void MapFeatures(Formula& f, double (*phi)(double)) {
  f.softmax = false;
  f.score = [phi](const Row& q, const Row& k) {
    double sum = 0;
    for (int d = 0; d < kDim; ++d) sum += phi(q[d]) * phi(k[d]);
    return sum;
  };
}

inline double EluPlusOne(double x) { return x > 0 ? x + 1 : std::exp(x); }

}  // namespace attendant
