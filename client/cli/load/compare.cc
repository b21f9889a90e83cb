// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/load/load_report.h"
#include "client/load/results/comparison.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr const char* kChangeWords[] = {"unknown", "unclear", "better", "worse", "not judged"};

const char* WordOf(Change change) { return kChangeWords[static_cast<size_t>(change)]; }

absl::StatusOr<nlohmann::ordered_json> ReadReport(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (file.peek() == std::ifstream::traits_type::eof() && file.is_open() && !file.bad()) {
    return absl::FailedPreconditionError(absl::StrCat("the file ", path, " is empty"));
  }
  std::ostringstream text;
  text << file.rdbuf();  // sets a flag where a read fails, as of a folder; a parser would throw
  if (!file || !text) {
    return absl::FailedPreconditionError(absl::StrCat("the file ", path, " cannot be read"));
  }
  nlohmann::ordered_json report =
      nlohmann::ordered_json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (!report.is_discarded()) return report;
  return absl::FailedPreconditionError(absl::StrCat("the file ", path, " is not JSON"));
}

std::string FormatValue(const ComparedFigure& figure, double value) {
  if (figure.is_share()) return absl::StrFormat("%.3g %%", 100 * value);
  return figure.name == "requests_per_s" ? FormatRate(value) : ShortDuration(absl::Seconds(value));
}

// In percent of A; of shares, in percent of the requests.
std::string FormatDifference(const ComparedFigure& figure) {
  if (figure.is_share()) return absl::StrFormat("%+.3g points", 100 * (figure.b - figure.a));
  return figure.a > 0 ? absl::StrFormat("%+.1f %%", 100 * (figure.b / figure.a - 1)) : "";
}

std::string FormatInterval(const ComparedFigure& figure) {
  if (!figure.difference.has_value()) return "";
  const double low = 100 * (figure.difference->value - figure.difference->half_width);
  const double high = 100 * (figure.difference->value + figure.difference->half_width);
  if (figure.is_share()) return absl::StrFormat("%+.3g to %+.3g points", low, high);
  return absl::StrFormat("%+.1f to %+.1f %%", low, high);
}

std::string FormatFigures(const std::vector<ComparedFigure>& figures) {
  std::vector<std::vector<std::string>> rows = {
      {"figure", "A", "B", "difference", "of batches, 95 %", "B is"}};
  for (const ComparedFigure& figure : figures) {
    rows.push_back({figure.name, FormatValue(figure, figure.a), FormatValue(figure, figure.b),
                    FormatDifference(figure), FormatInterval(figure), WordOf(figure.change)});
  }
  return Table(rows);
}

nlohmann::ordered_json FiguresToJson(const std::vector<ComparedFigure>& figures) {
  nlohmann::ordered_json json;
  for (const ComparedFigure& figure : figures) {
    nlohmann::ordered_json& one = json[figure.name];
    one = {{"a", figure.a}, {"b", figure.b}, {"change", WordOf(figure.change)}};
    if (!figure.difference.has_value()) continue;
    one["difference"] = {{"value", figure.difference->value},
                         {"half_width", figure.difference->half_width}};
  }
  return json;
}

// Why a load says too little about the server; empty when it does not.
std::string FaultOf(const nlohmann::ordered_json& report) {
  // The requests that it cut off were the slowest ones.
  if (report.contains("interrupted") && report["interrupted"] == true) return "it was interrupted";
  if (!report.contains("client") || !report["client"].is_object()) return "";
  const nlohmann::ordered_json& client = report["client"];
  if (!client.contains("bottleneck") || !client["bottleneck"].is_string()) return "";
  return absl::StrCat("the client was its bottleneck: ", client["bottleneck"].get<std::string>());
}

class CompareCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddSwitch("json", &json_, "Write JSON instead of text for people");
    flags.AddNumber("fail_if_worse", &fail_percent_, "PERCENT", {0},
                    "Exit code 5 when a figure of B is worse, with confidence, and by more than so "
                    "many percent of A, as any error_rate is after none, or when requests_per_s, "
                    "error_rate or mean cannot be tested; 0 never fails");
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (arguments.size() != 2) return UsageError("compare takes two files: A.json B.json", io);
    const absl::StatusOr<nlohmann::ordered_json> a = ReadReport(arguments[0]);
    if (!a.ok()) return UsageError(a.status().message(), io);
    const absl::StatusOr<nlohmann::ordered_json> b = ReadReport(arguments[1]);
    if (!b.ok()) return UsageError(b.status().message(), io);
    const absl::StatusOr<std::vector<ComparedFigure>> figures = CompareReports(*a, *b);
    if (!figures.ok()) return UsageError(figures.status().message(), io);
    if (json_) {
      io.out << Dump(FiguresToJson(*figures)) << "\n";
    } else {
      io.out << FormatFigures(*figures);
    }
    return ExplainNoVerdict(*a, *b, io) ? kExitNoVerdict : Judge(*figures, io);
  }

 private:
  // Tells all that stands against a verdict. Returns false when there is one.
  static bool ExplainNoVerdict(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b,
                               Io& io) {
    bool explained = false;
    for (const SettingDifference& setting : CompareSettings(a, b)) {
      io.err << "attendant: " << (setting.is_load ? "no verdict, " : "note, ")
             << "the loads differ in " << setting.name << ": A has " << OneLine(setting.a) << ", B "
             << OneLine(setting.b) << "\n";
      explained = explained || setting.is_load;
    }
    for (const nlohmann::ordered_json* report : {&a, &b}) {
      const std::string fault = FaultOf(*report);
      if (fault.empty()) continue;
      io.err << "attendant: no verdict on load " << (report == &a ? "A" : "B") << ", "
             << OneLine(fault) << "\n";
      explained = true;
    }
    return explained;
  }

  int Judge(const std::vector<ComparedFigure>& figures, Io& io) const {
    if (fail_percent_ == 0) return kExitOk;
    int exit_code = kExitOk;
    for (const ComparedFigure& figure : figures) {
      if (figure.change == Change::kUnknown) {
        io.err << "attendant: " << figure.name << " was not tested: a load has too few batches "
               << "of a second, or too few requests in one\n";
        if (figure.is_basic()) exit_code = kExitThreshold;
      } else if (figure.change == Change::kWorse && figure.PercentOfA() > fail_percent_) {
        io.err << "attendant: " << figure.name << " is worse: " << FormatValue(figure, figure.b)
               << " after " << FormatValue(figure, figure.a) << "\n";
        exit_code = kExitThreshold;
      }
    }
    return exit_code;
  }

  bool json_ = false;
  double fail_percent_ = 0;
};

}  // namespace

CommandInfo CompareCommandInfo() {
  return {.name = "compare",
          .summary = "Compares two reports of attendant load --json",
          .arguments = "A.json B.json",
          .details =
              "A difference is clear when its 95 % confidence interval, over the batches of "
              "both loads, does not\nhold 0; the 95 % are of all figures together. The interval "
              "is of means of batches, so it need not\nhold the difference of the whole loads "
              "beside it. A load needs five batches, so at least five\nseconds. Latencies are "
              "those of the requests that succeeded; error_rate is the share of the "
              "others.\nBoth loads must be of one loop. The exit code is 6 when one sent "
              "another load than the other, or was\ninterrupted, or when the client was the "
              "bottleneck. It needs no server.\n\n"
              "  attendant load --rate 200 --duration 30s --json > before.json\n"
              "  attendant compare before.json after.json --fail_if_worse 5\n",
          .make = []() -> std::unique_ptr<Command> { return std::make_unique<CompareCommand>(); }};
}

}  // namespace attendant::client
