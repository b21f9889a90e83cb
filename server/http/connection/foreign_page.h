// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/http/connection/request_head.h"
#include "server/http/http_types.h"

namespace attendant {

// Whether a request to a port that only this machine reaches may come from a web page of somebody
// else, in a browser on this machine. It names another host: a page whose name leads here sends its
// own name as Host, and a page of another server sends that server as Origin. IP addresses and
// localhost are no names that lead elsewhere. Programs send no Origin.
bool IsFromForeignPage(const RequestHead& head);

// The answer to it: 403.
HttpResponse ForeignPage();

}  // namespace attendant
