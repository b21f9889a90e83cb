# SPDX-License-Identifier: Apache-2.0
# Headers of the system that many sources include, compiled once for each family of targets:
#   core       the standard library and Abseil
#   rpc        core, gRPC and the generated messages
#   test       core and GoogleTest
#   rpc_test   rpc and GoogleTest
# No header of this project is in any list: a change of one compiles its users and nothing else. Every source still
# includes all that it uses: ATTENDANT_PCH=OFF (as in the preset clang-strict) compiles it without these lists.
include_guard()

set(attendant_pch_default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(attendant_pch_default ON)
endif()
option(ATTENDANT_PCH "Precompile the headers of the system" ${attendant_pch_default})

set(attendant_pch_core
  <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque> <fstream> <functional> <limits> <map>
  <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <thread> <tuple> <unordered_map>
  <utility> <variant> <vector>
  <absl/functional/any_invocable.h> <absl/functional/function_ref.h> <absl/status/statusor.h>
  <absl/strings/match.h> <absl/strings/numbers.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
  <absl/synchronization/mutex.h> <absl/time/clock.h> <absl/time/time.h>)
set(attendant_pch_rpc ${attendant_pch_core}
  <grpcpp/grpcpp.h> <grpcpp/support/client_callback.h> <grpcpp/support/server_callback.h>
  <attendant/v1/attention.grpc.pb.h> <attendant/v1/encoder.grpc.pb.h>
  <grpc/health/v1/health.grpc.pb.h> <inference/grpc_service.grpc.pb.h>)
set(attendant_pch_test ${attendant_pch_core} <gmock/gmock.h> <gtest/gtest.h>)
set(attendant_pch_rpc_test ${attendant_pch_rpc} <gmock/gmock.h> <gtest/gtest.h>)

# attendant_pch_family(NAME lib ...): compiles a family's headers with the libraries they come from.
function(attendant_pch_family name)
  set(source ${CMAKE_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(attendant_pch_${name} OBJECT ${source})
  target_link_libraries(attendant_pch_${name} PRIVATE attendant_build ${ARGN})
  target_precompile_headers(attendant_pch_${name} PRIVATE ${attendant_pch_${name}})
endfunction()

set(attendant_absl absl::any_invocable absl::function_ref absl::statusor absl::str_format absl::strings
                   absl::synchronization absl::time)
if(ATTENDANT_PCH AND absl_FOUND)
  attendant_pch_family(core ${attendant_absl})
  if(TARGET gRPC::grpc++)
    attendant_pch_family(rpc ${attendant_absl} attendant_proto)
  endif()
  if(TARGET GTest::gmock)
    # Under ThreadSanitizer every test links gRPC (attendant_tell_order in Attendant.cmake), whose -pthread would
    # otherwise keep these headers from being used.
    if(ATTENDANT_SANITIZE MATCHES thread AND TARGET gRPC::grpc++)
      set(attendant_tsan_grpc gRPC::grpc++)
    endif()
    attendant_pch_family(test ${attendant_absl} attendant_test_options GTest::gmock ${attendant_tsan_grpc})
    if(TARGET gRPC::grpc++)
      attendant_pch_family(rpc_test ${attendant_absl} attendant_test_options attendant_proto GTest::gmock)
    endif()
  endif()
endif()

# attendant_precompiled(TARGET FAMILY DEFAULT): the target uses the headers of a family, the default where that is
# empty. A target whose options differ (position-independent code, instruction sets, OpenMP) says `none`.
function(attendant_precompiled target family default)
  if(NOT family)
    set(family ${default})
  endif()
  if(TARGET attendant_pch_${family})
    target_precompile_headers(${target} REUSE_FROM attendant_pch_${family})
  endif()
endfunction()
