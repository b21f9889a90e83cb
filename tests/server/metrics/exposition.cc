// SPDX-License-Identifier: Apache-2.0
#include "tests/server/metrics/exposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

absl::Status Bad(const std::string& what, const std::string& line) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": '", line, "'"));
}

absl::StatusOr<Sample> ParseSample(const std::string& line) {
  static const std::regex shape(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*))re"
      R"re((?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})?)re"
      R"re( (\S+))re");
  static const std::regex label(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)")re");
  std::smatch match;
  if (!std::regex_match(line, match, shape)) return Bad("not a sample", line);
  Sample sample{.name = match[1], .labels = {}, .value = 0};
  const std::string labels = match[2], value = match[3];
  for (std::sregex_iterator it(labels.begin(), labels.end(), label), end; it != end; ++it) {
    if (!sample.labels.emplace((*it)[1], (*it)[2]).second) return Bad("label twice", line);
  }
  if (value == "+Inf" || value == "-Inf" || value == "Nan" ||
      !absl::SimpleAtod(value, &sample.value)) {
    return Bad("not a number", line);
  }
  return sample;
}

absl::Status CheckHistogram(const std::string& name, const std::vector<Sample>& samples) {
  struct Series {
    double bound = -std::numeric_limits<double>::infinity();
    double buckets = 0, count = -1;
    bool has_sum = false;
  };
  std::map<LabelMap, Series> all;
  for (const Sample& sample : samples) {
    LabelMap labels = sample.labels;
    const std::string le = labels["le"];
    labels.erase("le");
    Series& series = all[labels];
    if (sample.name == name + "_count") {
      series.count = sample.value;
    } else if (sample.name == name + "_sum") {
      series.has_sum = true;
    } else if (sample.name == name + "_bucket") {
      double bound = 0;
      if (!absl::SimpleAtod(le, &bound)) return Bad("not a bound", le);
      if (bound <= series.bound) return Bad("bounds do not rise", le);
      if (sample.value < series.buckets) return Bad("buckets do not rise", name);
      series.bound = bound;
      series.buckets = sample.value;
    } else {
      return Bad("foreign sample in histogram", sample.name);
    }
  }
  for (const auto& [labels, series] : all) {
    if (!std::isinf(series.bound)) return Bad("no +Inf bucket", name);
    if (series.count != series.buckets || !series.has_sum) return Bad("count or sum wrong", name);
  }
  return absl::OkStatus();
}

absl::Status CheckFamily(const std::string& name, const Family& family) {
  if (family.help.empty()) return Bad("no HELP", name);
  std::set<std::pair<std::string, LabelMap>> seen;
  for (const Sample& sample : family.samples) {
    if (!seen.emplace(sample.name, sample.labels).second) return Bad("series twice", sample.name);
    if (family.type != "histogram" && sample.name != name)
      return Bad("foreign sample", sample.name);
    if (family.type == "counter" && sample.value < 0) return Bad("negative counter", name);
  }
  if (family.type == "counter" && !absl::EndsWith(name, "_total")) return Bad("counter name", name);
  if (family.type == "histogram") return CheckHistogram(name, family.samples);
  return family.type == "counter" || family.type == "gauge" ? absl::OkStatus()
                                                            : Bad("unknown type", family.type);
}

}  // namespace

absl::StatusOr<Exposition> Exposition::Parse(const std::string& text) {
  Exposition exposition;
  if (!absl::EndsWith(text, "\n")) return Bad("does not end in a newline", "");
  std::string name;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(absl::StripSuffix(text, "\n"), '\n'))) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (absl::StartsWith(line, "# HELP ") && words.size() == 4) {
      name = words[2];
      if (!exposition.families_.emplace(name, Family{words[3], "", {}}).second) {
        return Bad("family twice", line);
      }
    } else if (absl::StartsWith(line, "# TYPE ") && words.size() == 4 && words[2] == name) {
      exposition.families_[name].type = words[3];
    } else {
      absl::StatusOr<Sample> sample = ParseSample(line);
      if (!sample.ok()) return sample.status();
      if (name.empty() || !absl::StartsWith(sample->name, name)) return Bad("no family", line);
      exposition.families_[name].samples.push_back(*std::move(sample));
    }
  }
  for (const auto& [family_name, family] : exposition.families_) {
    if (absl::Status status = CheckFamily(family_name, family); !status.ok()) return status;
  }
  return exposition;
}

double Exposition::Value(const std::string& name, const LabelMap& labels) const {
  for (const auto& [family_name, family] : families_) {
    for (const Sample& sample : family.samples) {
      if (sample.name == name && sample.labels == labels) return sample.value;
    }
  }
  ADD_FAILURE() << "no series " << name;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace attendant
