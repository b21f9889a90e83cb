// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/http/http_types.h"

namespace attendant {

// {"code":"invalid_argument","message":".."}, as clients of the Connect protocol read errors.
HttpResponse ConnectError(const HttpFailure& failure);

}  // namespace attendant
