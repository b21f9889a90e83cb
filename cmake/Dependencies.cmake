# SPDX-License-Identifier: Apache-2.0
# The libraries that Attendant stands on, all from Debian (deploy/install-deps.sh installs them).
include_guard()

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc)
find_package(PkgConfig REQUIRED)
pkg_check_modules(pangocairo REQUIRED IMPORTED_TARGET pangocairo)  # and cairo, which draws

# oneDNN: the distribution's, or the one deploy/install-deps.sh built into its cache.
if(DEFINED ENV{ATTENDANT_CACHE})
  set(attendant_cache $ENV{ATTENDANT_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(attendant_cache $ENV{XDG_CACHE_HOME}/attendant)
else()
  set(attendant_cache $ENV{HOME}/.cache/attendant)
endif()
find_package(dnnl 3.7 CONFIG REQUIRED HINTS ${attendant_cache}/onednn)
message(STATUS "oneDNN ${dnnl_VERSION}, CPU runtime ${DNNL_CPU_RUNTIME}: ${dnnl_DIR}")

if(ATTENDANT_BUILD_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(benchmark CONFIG QUIET)
  include(GoogleTest)
endif()
