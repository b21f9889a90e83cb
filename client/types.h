// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/connect_options.h"
#include "client/types/encode_request.h"
#include "client/types/encode_result.h"
#include "client/types/models.h"
#include "client/types/sequence.h"
#include "client/types/tensor.h"
#include "client/types/timings.h"

// The values that go into a client and come out of it, a header for each subject. They are plain
// structs without locks: one thread at a time may change one.
//
// The names of sizes, as everywhere in Attendant: `len` is the tokens of one sequence, `tokens`
// those of all sequences of a request, `hidden` the values of one token. Tensors hold float,
// row-major.
