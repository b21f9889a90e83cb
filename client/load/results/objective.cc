// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/objective.h"

#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kForEver = std::numeric_limits<double>::infinity();

// Requests that take for ever. A refusal does not: it came, and error_rate bounds refusals.
int64_t Unanswered(const LoadSummary& summary) {
  const auto late =
      summary.errors.find(absl::StatusCodeToString(absl::StatusCode::kDeadlineExceeded));
  return summary.not_sent + (late == summary.errors.end() ? 0 : late->second.count);
}

double PercentileSeconds(const Histogram& times_ns, int64_t unanswered, double percent) {
  const double answered = static_cast<double>(times_ns.count());
  const double among_answered = percent * (answered + static_cast<double>(unanswered)) / answered;
  if (among_answered > 100) return kForEver;
  return static_cast<double>(times_ns.Percentile(among_answered)) * 1e-9;
}

double ErrorRate(const LoadSummary& summary) {
  const double bad = static_cast<double>(summary.failed + summary.not_sent);
  const double all = static_cast<double>(summary.ok) + bad;
  return all > 0 ? bad / all : kUnknown;
}

}  // namespace

absl::StatusOr<Condition> Condition::Parse(absl::string_view text) {
  const size_t at = text.find_first_of("<>");
  if (at == absl::string_view::npos) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", text, "' is no condition: write FIGURE>VALUE, such as p99>50ms"));
  }
  const bool or_equal = at + 1 < text.size() && text[at + 1] == '=';
  const bool above = text[at] == '>';
  const Relation relation = above ? (or_equal ? Relation::kAtLeast : Relation::kAbove)
                                  : (or_equal ? Relation::kAtMost : Relation::kBelow);
  return ParseParts(text, text.substr(0, at), text.substr(at + (or_equal ? 2 : 1)), relation);
}

absl::StatusOr<Condition> Condition::ParseObjective(absl::string_view text) {
  const size_t at = text.find_first_of("<=");
  if (at == absl::string_view::npos) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", text, "' is no objective: write FIGURE=VALUE, such as p99=50ms"));
  }
  const size_t value = at + (absl::StartsWith(text.substr(at), "<=") ? 2 : 1);
  ATTENDANT_ASSIGN_OR_RETURN(
      Condition condition,
      ParseParts(text, text.substr(0, at), text.substr(value), Relation::kAtMost));
  if (condition.unit_ != Unit::kPerSecond) return condition;
  return absl::FailedPreconditionError(
      absl::StrCat("'", text, "': an objective bounds a latency or the error_rate"));
}

absl::StatusOr<Condition> Condition::ParseParts(absl::string_view text, absl::string_view name,
                                                absl::string_view value, Relation relation) {
  Condition condition;
  condition.text_ = std::string(text);
  condition.figure_ = std::string(name);
  condition.relation_ = relation;
  ATTENDANT_RETURN_IF_ERROR(condition.SetFigure(name));
  ATTENDANT_RETURN_IF_ERROR(condition.SetBound(value));
  return condition;
}

absl::Status Condition::SetFigure(absl::string_view name) {
  if (name == "error_rate") {
    unit_ = Unit::kShare;
    return absl::OkStatus();
  }
  if (name == "requests_per_s" || name == "sequences_per_s" || name == "tokens_per_s") {
    unit_ = Unit::kPerSecond;
    return absl::OkStatus();
  }
  unit_ = Unit::kSeconds;
  of_service_ = absl::ConsumePrefix(&name, "service.");
  if (name == "mean" || name == "max") {
    percent_ = name == "max" ? 100 : 0;
    return absl::OkStatus();
  }
  if (absl::ConsumePrefix(&name, "p") && absl::SimpleAtod(name, &percent_) && percent_ > 0 &&
      percent_ < 100) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("'", text_, "': there is no figure ", figure_,
                   "; there are mean, max, p50, p99.9 and so on, service.p99, error_rate, "
                   "requests_per_s, sequences_per_s, tokens_per_s"));
}

absl::Status Condition::SetBound(absl::string_view value) {
  absl::Duration duration;
  double number = 0;
  switch (unit_) {
    case Unit::kSeconds:
      if (!absl::ParseDuration(value, &duration) || duration < absl::ZeroDuration()) break;
      bound_ = absl::ToDoubleSeconds(duration);
      return absl::OkStatus();
    case Unit::kShare: {
      const bool percent = absl::ConsumeSuffix(&value, "%");
      if (!absl::SimpleAtod(value, &number)) break;
      bound_ = percent ? number / 100 : number;
      if (!(bound_ >= 0 && bound_ <= 1)) break;
      return absl::OkStatus();
    }
    case Unit::kPerSecond:
      if (!absl::SimpleAtod(value, &number) || !std::isfinite(number) || number < 0) break;
      bound_ = number;
      return absl::OkStatus();
  }
  constexpr absl::string_view kExpected[] = {"a duration such as 50ms",
                                             "a share such as 1% or 0.01", "a number"};
  return absl::FailedPreconditionError(absl::StrCat(
      "'", text_, "': ", figure_, " is compared with ", kExpected[static_cast<size_t>(unit_)]));
}

double Condition::LatencyFigure(const LoadResult& result) const {
  const Histogram& times_ns = of_service_ ? result.detail.service_ns : result.detail.response_ns;
  if (times_ns.count() == 0) return kUnknown;
  const int64_t unanswered = Unanswered(result.summary);
  if (percent_ > 0) return PercentileSeconds(times_ns, unanswered, percent_);
  return unanswered > 0 ? kForEver : times_ns.mean() * 1e-9;
}

double Condition::Figure(const LoadResult& result) const {
  if (unit_ == Unit::kSeconds) return LatencyFigure(result);
  if (unit_ == Unit::kShare) return ErrorRate(result.summary);
  if (figure_ == "requests_per_s") return result.summary.requests_per_s;
  if (figure_ == "sequences_per_s") return result.summary.sequences_per_s;
  return result.summary.tokens_per_s.value_or(kUnknown);
}

bool Condition::IsKnown(const LoadResult& result) const { return !std::isnan(Figure(result)); }

bool Condition::Holds(const LoadResult& result) const {
  const double figure = Figure(result);
  switch (relation_) {
    case Relation::kAbove:
      return figure > bound_;
    case Relation::kAtLeast:
      return figure >= bound_;
    case Relation::kBelow:
      return figure < bound_;
    case Relation::kAtMost:
      return figure <= bound_;
  }
  return false;
}

std::string Condition::Describe(const LoadResult& result) const {
  const double figure = Figure(result);
  if (std::isnan(figure)) return absl::StrCat(figure_, " is unknown");
  if (std::isinf(figure)) {
    return absl::StrCat(figure_, " is infinite: requests were not sent or passed their deadline");
  }
  switch (unit_) {
    case Unit::kSeconds:
      return absl::StrFormat("%s is %.4g ms", figure_, figure * 1e3);
    case Unit::kShare:
      return absl::StrFormat("%s is %.3g %%", figure_, figure * 100);
    case Unit::kPerSecond:
      return absl::StrFormat("%s is %.4g", figure_, figure);
  }
  return figure_;
}

}  // namespace attendant::client
