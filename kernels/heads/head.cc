// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/head.h"

namespace attendant {

absl::string_view TaskName(TaskKind kind) {
  switch (kind) {
    case TaskKind::kSparse:
      return "sparse";
    case TaskKind::kFillMask:
      return "fill_mask";
    case TaskKind::kTokenScores:
      return "token_scores";
    case TaskKind::kMultiVector:
      return "multi_vector";
  }
  return "";
}

}  // namespace attendant
