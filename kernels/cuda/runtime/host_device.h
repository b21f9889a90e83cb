// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks a function that is the same code on the host, where the tests cover it, and on the device.
#ifdef __CUDACC__
#define ATTENDANT_HOST_DEVICE __host__ __device__
#else
#define ATTENDANT_HOST_DEVICE
#endif
