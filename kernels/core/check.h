// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

// Ends the process when our own reasoning is wrong; never for anything that an input, a file or a
// peer can cause. (Abseil's CHECK is newer than Debian 12's Abseil.)
#define ATTENDANT_CHECK(condition)                                                       \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
