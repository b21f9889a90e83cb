// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/rate_search.h"

#include <cmath>

namespace attendant::client {

void RateSearch::Report(bool kept) {
  (kept ? kept_ : missed_) = rate_;
  if (missed_ == 0) {
    rate_ = 2 * kept_;
    done_ = rate_ > kHighestRate;
  } else if (kept_ == 0) {
    rate_ = missed_ / 2;
    done_ = rate_ < kLowestRate;
  } else {
    rate_ = std::sqrt(kept_ * missed_);
    done_ = missed_ <= kPrecision * kept_;
  }
}

}  // namespace attendant::client
