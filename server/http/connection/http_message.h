// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/call_gate.h"
#include "server/http/http_types.h"

namespace attendant {

// The bytes of the empty lines that `bytes` begin with: before a request they count for nothing
// (RFC 9112, 2.2).
size_t EmptyLineBytes(absl::string_view bytes);

// True if `word` has the form of the HTTP methods that IANA lists: ASCII capital letters and '-'.
bool IsMethod(absl::string_view word);

// The head of an answer, up to its empty line. The answer to HEAD is this alone.
// `now` is the header Date, which each answer must have (RFC 9110, 6.6.1).
std::string HttpHeadOf(const HttpResponse& response, bool keep_alive, absl::Time now);

// The request's id and trace, as the call has them.
void AddCallHeaders(const CallInfo& call, HttpResponse& response);

// Errors that the head of a request shows: 413 for a body that is too long, 415 for a coding other
// than gzip. `length` is of the body as sent, where the client has told it.
std::optional<HttpFailure> UnfitBody(absl::string_view coding, std::optional<uint64_t> length,
                                     int64_t max_bytes);
HttpFailure BodyTooLong(int64_t max_bytes);
bool IsGzip(absl::string_view coding);
// The failure for a Transfer-Encoding; nothing for `chunked` alone. 400 if client and server could
// disagree on the end of the body, 501 for another coding inside chunks. (RFC 9112, 6.1 and 6.3.)
std::optional<HttpFailure> UnfitTransfer(absl::string_view codings, bool http_1_0);

// Answers to requests that no route serves.
HttpResponse NotHttp();
HttpResponse UnfitTarget();
HttpResponse UnfitHost();
HttpResponse HeadTooLong();
// The answer 404, in the error form of the most similar route; null: plain text.
HttpResponse NoSuchPath(HttpErrorShape shape);
HttpResponse MethodNotAllowed(const std::string& allow, HttpErrorShape shape);

}  // namespace attendant
