# SPDX-License-Identifier: Apache-2.0
# The libraries that kernels and their tests stand on. ATTENDANT_KERNELS_ALONE: what is missing is left out together
# with what needs it, so that a bare GPU machine builds kernels/cuda with the CUDA toolkit only. Sets
# ATTENDANT_HAS_CPU_KERNELS.
include_guard()

set(required REQUIRED)
if(ATTENDANT_KERNELS_ALONE)
  set(required QUIET)
endif()
find_package(Threads REQUIRED)
find_package(absl ${required})
find_package(nlohmann_json CONFIG ${required})

# oneDNN: the distribution's, or the one deploy/install-deps.sh built into its cache.
if(DEFINED ENV{ATTENDANT_CACHE})
  set(attendant_cache $ENV{ATTENDANT_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(attendant_cache $ENV{XDG_CACHE_HOME}/attendant)
else()
  set(attendant_cache $ENV{HOME}/.cache/attendant)
endif()
find_package(dnnl 3.7 CONFIG ${required} HINTS ${attendant_cache}/onednn)
set(ATTENDANT_HAS_CPU_KERNELS OFF)
if(absl_FOUND AND nlohmann_json_FOUND AND dnnl_FOUND)
  set(ATTENDANT_HAS_CPU_KERNELS ON)
  message(STATUS "oneDNN ${dnnl_VERSION}, CPU runtime ${DNNL_CPU_RUNTIME}: ${dnnl_DIR}")
else()
  message(STATUS "kernels/cuda alone: Abseil, nlohmann_json or oneDNN 3.7 is missing")
endif()

if(ATTENDANT_BUILD_TESTS)
  find_package(GTest CONFIG ${required})
  find_package(benchmark CONFIG QUIET)
  include(GoogleTest)
endif()
