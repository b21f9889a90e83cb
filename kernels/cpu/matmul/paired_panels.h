// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/core/shape.h"

namespace attendant::cpu {

// The weight [n, k] of an 8-bit matmul as PairedPanels (paired_panel.h) of `panel_columns` columns
// each, of which the last one is filled up with zeros. They lie one behind the other in `storage`,
// PairedPanelBytes for each; `storage` is aligned to 8 bytes.
int64_t PairedPanelBytes(int64_t k, int64_t panel_columns);
void PackPairedPanels(TensorView<const int8_t, 2> weight, int64_t panel_columns, void* storage);

}  // namespace attendant::cpu
