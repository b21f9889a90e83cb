// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// First error wins: both macros return from the enclosing function at the first error. That
// function returns absl::Status or any absl::StatusOr. Each expression is evaluated once.

// Returns the error of an absl::Status or an absl::StatusOr; does nothing when it is OK.
//
//   ATTENDANT_RETURN_IF_ERROR(CheckConfig(config));
#define ATTENDANT_RETURN_IF_ERROR(...)                                                  \
  do {                                                                                  \
    if (auto&& attendant_status = (__VA_ARGS__); !attendant_status.ok()) [[unlikely]] { \
      return ::attendant::status_macros::StatusOf(                                      \
          std::forward<decltype(attendant_status)>(attendant_status));                  \
    }                                                                                   \
  } while (false)

// Declares or assigns `lhs` from the value of an absl::StatusOr, or returns its error. It expands
// to several statements: an `if` around it needs braces. `lhs` has no comma: name such a type
// first.
//
//   ATTENDANT_ASSIGN_OR_RETURN(const EncoderConfig config, ReadConfig(path));
#define ATTENDANT_ASSIGN_OR_RETURN(lhs, ...)                                             \
  ATTENDANT_ASSIGN_OR_RETURN_AS(ATTENDANT_STATUS_JOIN(attendant_result_, __LINE__), lhs, \
                                __VA_ARGS__)

#define ATTENDANT_ASSIGN_OR_RETURN_AS(result, lhs, ...) \
  auto result = (__VA_ARGS__);                          \
  if (!result.ok()) [[unlikely]]                        \
    return std::move(result).status();                  \
  lhs = *std::move(result)

#define ATTENDANT_STATUS_JOIN(a, b) ATTENDANT_STATUS_JOIN_EXPANDED(a, b)
#define ATTENDANT_STATUS_JOIN_EXPANDED(a, b) a##b

namespace attendant::status_macros {

inline absl::Status StatusOf(absl::Status status) { return status; }

template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace attendant::status_macros
