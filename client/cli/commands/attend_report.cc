// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/attend_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/format.h"

namespace attendant::client {
namespace {

constexpr int64_t kMaxColumns = 64;
constexpr int64_t kMaxRows = 24;
constexpr int64_t kMaxHeads = 16;
constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};

std::string RangeText(const std::vector<float>& values) {
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  double sum = 0;
  int64_t not_finite = 0;
  for (float value : values) {
    if (!std::isfinite(value)) {
      ++not_finite;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  const auto count = static_cast<int64_t>(values.size()) - not_finite;
  std::string text = count == 0 ? "no finite value"
                                : absl::StrFormat("from %.4g to %.4g, mean %.4g", low, high,
                                                  sum / static_cast<double>(count));
  if (not_finite > 0) absl::StrAppend(&text, ", ", not_finite, " not finite");
  return text;
}

// The mean of cells [begin, end) x [first, last) of a matrix with `columns` columns.
float Mean(const float* matrix, int64_t columns, int64_t begin, int64_t end, int64_t first,
           int64_t last) {
  double sum = 0;
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t column = first; column < last; ++column) sum += matrix[row * columns + column];
  }
  return static_cast<float>(sum / static_cast<double>((end - begin) * (last - first)));
}

std::string Strip(const float* matrix, int64_t rows, int64_t columns) {
  const int64_t shown_rows = std::min(rows, kMaxRows);
  const int64_t shown_columns = std::min(columns, kMaxColumns);
  std::string text;
  for (int64_t r = 0; r < shown_rows; ++r) {
    std::vector<float> cells;
    for (int64_t c = 0; c < shown_columns; ++c) {
      cells.push_back(Mean(matrix, columns, r * rows / shown_rows, (r + 1) * rows / shown_rows,
                           c * columns / shown_columns, (c + 1) * columns / shown_columns));
    }
    const float largest = *std::max_element(cells.begin(), cells.end());
    absl::StrAppend(&text, "  |");
    for (float cell : cells) {
      // A server may send anything: infinity divided by infinity is no number.
      const float share = !(largest > 0 && cell > 0) ? 0 : cell >= largest ? 1 : cell / largest;
      text += kShades[std::clamp(static_cast<int>(std::ceil(share * 4)), 0, 4)];
    }
    absl::StrAppend(&text, "|\n");
  }
  return text;
}

std::string Ms(int64_t us) { return absl::StrFormat("%.3f", static_cast<double>(us) / 1000); }

std::string ModuleShape(const AttentionModule& module) {
  if (module.type != "encoder") {
    return absl::StrCat("keys ", module.key_dim, ", values ", module.value_dim);
  }
  return absl::StrCat("ffn ", module.ffn, ", ", module.activation, ", ",
                      module.norm_first ? "pre-norm" : "post-norm");
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string Summary(const AttendRequest& request, const AttendResult& result) {
  const Tensor& key = request.key.has_value() ? *request.key : request.query;
  const Tensor& value = request.value.has_value() ? *request.value : key;
  std::string text = absl::StrFormat(
      "%s: query %s, key %s, value %s\n", request.model.empty() ? request.kind : request.model,
      ShapeText(request.query.shape), ShapeText(key.shape), ShapeText(value.shape));
  absl::StrAppend(&text, "output   ", ShapeText(result.output.shape), "  ",
                  RangeText(result.output.values), "\n");
  if (result.attention_weights.has_value()) {
    absl::StrAppend(&text, "weights  ", ShapeText(result.attention_weights->shape), "  ",
                    RangeText(result.attention_weights->values), "\n");
  }
  const Timings& t = result.timings;
  absl::StrAppend(&text, "server   ", Ms(t.total_us), " ms: reading ", Ms(t.tokenize_us),
                  ", queue ", Ms(t.queue_us), ", compute ", Ms(t.compute_us), "\n");
  return text;
}

std::string ModulesTable(const std::vector<AttentionModule>& modules) {
  std::vector<std::vector<std::string>> rows = {
      {"MODULE", "STATE", "TYPE", "DTYPE", "LAYERS", "HEADS", "HIDDEN", ""}};
  for (const AttentionModule& module : modules) {
    rows.push_back({module.name, module.state, module.type, module.dtype,
                    absl::StrCat(module.layers), absl::StrCat(module.heads),
                    absl::StrCat(module.hidden), ModuleShape(module)});
  }
  return Table(rows);
}

nlohmann::ordered_json ToJson(const AttentionModule& module) {
  return {{"name", module.name},    {"state", module.state},   {"type", module.type},
          {"dtype", module.dtype},  {"layers", module.layers}, {"heads", module.heads},
          {"hidden", module.hidden}};
}

std::string OfferText(const AttentionOffer& offer) {
  std::vector<std::vector<std::string>> kinds = {
      {"KIND", "FORMULA", "TIME", "MEMORY", "WEIGHTS", "PARAMETERS"}};
  for (const AttentionKind& kind : offer.kinds) {
    kinds.push_back({kind.name, kind.formula, kind.time, kind.memory,
                     kind.has_attention_weights ? "yes" : "no",
                     absl::StrJoin(kind.parameters, "; ")});
  }
  std::string text = Table(kinds);
  if (!offer.modules.empty()) absl::StrAppend(&text, "\n", ModulesTable(offer.modules));
  absl::StrAppend(&text, "\nA request may have ", Thousands(offer.max_attention_tokens),
                  " queries and keys, ", Thousands(offer.max_request_bytes), " bytes, and take ",
                  Thousands(offer.max_attention_operations), " multiply-adds, ",
                  Thousands(offer.max_attention_bytes),
                  " bytes of scratch memory and an answer of ", Thousands(offer.max_response_bytes),
                  " bytes.\n");
  return text;
}

std::string WeightsStrips(const Tensor& weights) {
  const std::vector<int64_t>& shape = weights.shape;
  if (shape.size() < 3) return "The weights of ragged sequences are flat: write them to a file.\n";
  const int64_t heads = shape.size() == 4 ? shape[1] : 1;
  const int64_t rows = shape[shape.size() - 2];
  const int64_t columns = shape[shape.size() - 1];
  if (weights.values.empty()) return "";
  std::string text;
  for (int64_t head = 0; head < std::min(heads, kMaxHeads); ++head) {
    const std::string name = shape.size() == 4 ? absl::StrCat("head ", head) : "weights";
    absl::StrAppend(&text, name, ": ", rows, " queries down, ", columns, " keys across\n",
                    Strip(weights.values.data() + head * rows * columns, rows, columns));
  }
  if (heads > kMaxHeads) absl::StrAppend(&text, "... and ", heads - kMaxHeads, " more heads\n");
  return text;
}

}  // namespace attendant::client
