// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/server/rpc_methods.h"

namespace attendant {

// Calls a method of a whole server in this process, over a connection, with bytes of any kind.
//
// `data`: a byte that chooses the method, then the message. Of a stream, two bytes with its length,
// the lower first, come before each message; the last one ends with the input.
//
// Ends the process, saying why, unless
//   the call ends within kLongestCall, with a code that a client can act on;
//   a stream answers each of its messages once, and ends with OK, where the method does so;
//   client and server took no more memory than docs/bounds.md promises;
//   the server then answers a good request as it did before.
void CallWithBytes(std::span<const FuzzedMethod> methods, const uint8_t* data, size_t size);

}  // namespace attendant
