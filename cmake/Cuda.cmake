# SPDX-License-Identifier: Apache-2.0
# Whether the CUDA back end is built for devices: sets ATTENDANT_HAS_CUDA and says so in one line. Without it, its
# device code is still compiled for the CPU and tested there (tests/support/cuda_emulation).
include_guard()
include(CheckLanguage)

set(ATTENDANT_CUDA AUTO CACHE STRING "Build the CUDA back end: AUTO (where there is a compiler for it), ON or OFF")
set_property(CACHE ATTENDANT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(attendant_cuda_minimum 13.0)  # what it is compiled with; cuBLASLt's scales by row and channel came with 12.9

# Sets `why_not` to why it cannot be built, or to nothing and enables the language.
macro(attendant_enable_cuda why_not)
  # An installed toolkit, or the one deploy/fetch-cuda.sh brought.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(ATTENDANT_NVCC nvcc HINTS /usr/local/cuda/bin ${attendant_cache}/cuda/bin)
    if(ATTENDANT_NVCC)
      set(CMAKE_CUDA_COMPILER ${ATTENDANT_NVCC})
    endif()
  endif()
  # Machine code for 8.0 (which 8.6 and 8.9 run), 9.0 and 10.0 (which 10.3 runs), and PTX for what comes after them.
  # 90a, which every device of 9.0 runs and no other, has wgmma; with 90 alone attention would be slower.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 100-real 90-virtual)
  endif()
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(${why_not} "there is no CUDA compiler")
  else()
    enable_language(CUDA)
    set(${why_not} "")
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS attendant_cuda_minimum)
      set(${why_not} "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is older than ${attendant_cuda_minimum}")
    endif()
  endif()
endmacro()

set(ATTENDANT_HAS_CUDA OFF)
if(NOT ATTENDANT_CUDA)
  set(attendant_why_no_cuda "ATTENDANT_CUDA is OFF")
elseif(ATTENDANT_SANITIZE)
  set(attendant_why_no_cuda "nvcc knows no sanitizers")
else()
  attendant_enable_cuda(attendant_why_no_cuda)
endif()

if(attendant_why_no_cuda STREQUAL "")
  set(ATTENDANT_HAS_CUDA ON)
  # Device code takes the C++ sources' standard. CMake 3.25 does not know how nvcc calls it.
  foreach(dialect STANDARD EXTENSION)
    if(NOT DEFINED CMAKE_CUDA20_${dialect}_COMPILE_OPTION)
      set(CMAKE_CUDA20_${dialect}_COMPILE_OPTION -std=c++20)
    endif()
  endforeach()
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "CUDA back end: built with ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")
elseif(ATTENDANT_CUDA STREQUAL "ON")
  message(FATAL_ERROR "the CUDA back end cannot be built: ${attendant_why_no_cuda}")
else()
  message(STATUS "CUDA back end: not built, ${attendant_why_no_cuda}")
endif()
