// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/stream_errors.h"

#include <boost/asio/ssl/error.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>

namespace attendant {

namespace http = boost::beast::http;

bool IsParseError(const boost::system::error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

HttpEnd EndAfter(const boost::system::error_code& error, HttpEnd late) {
  return error == boost::beast::error::timeout ? late : HttpEnd::kNormal;
}

HttpEnd EndAfterHandshake(const boost::system::error_code& error) {
  if (error.category() == boost::asio::error::get_ssl_category()) return HttpEnd::kHandshake;
  return EndAfter(error, HttpEnd::kHandshake);
}

}  // namespace attendant
