// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/growth.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/text/base/part_table.h"

namespace attendant {

void CheckGrowth(const JsonFields& file, absl::string_view part, const Growth& growth,
                 double max_times) {
  if (!file.ok()) return;
  if (growth.steps > static_cast<int64_t>(kMaxPartsInSequence)) {
    file.Fail(part, absl::StrCat("has ", growth.steps, " steps in all, the limit is ",
                                 kMaxPartsInSequence));
  } else if (growth.times > max_times) {
    file.Fail(part, absl::StrCat("may make a text ", growth.times, " times as long, the limit is ",
                                 max_times));
  }
}

}  // namespace attendant
