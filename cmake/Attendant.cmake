# SPDX-License-Identifier: Apache-2.0
# The options of every target, and one helper each for libraries, programs, tests and benchmarks.
include_guard()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# A compiler cache, where there is one, keyed without the checkout's path: a fresh clone reuses it.
find_program(ATTENDANT_CCACHE ccache)
if(ATTENDANT_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
               CCACHE_SLOPPINESS=pch_defines,time_macros ${ATTENDANT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# attendant_optimize(LEVEL): how the release build compiles this folder and those below it, O3 where nothing is said.
# Only compute gains from O3. Code that runs once a request at most is O1: it compiles in 60 % of the time. From
# version 13 on, g++ does not take a precompiled header of O3 for O1, so there it is O2.
set(attendant_O1 O1)
set(attendant_O2 O2)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(attendant_O1 O2)
endif()
macro(attendant_optimize level)
  add_compile_options($<$<CONFIG:Release>:-${attendant_${level}}>)
endmacro()

# Compiled and linked into everything of ours, generated code included.
add_library(attendant_build INTERFACE)
target_include_directories(attendant_build INTERFACE ${CMAKE_CURRENT_LIST_DIR}/..)
if(ATTENDANT_SANITIZE)
  target_compile_options(attendant_build INTERFACE -fsanitize=${ATTENDANT_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(ATTENDANT_SANITIZE MATCHES "address|thread")
    target_compile_definitions(attendant_build INTERFACE ATTENDANT_SANITIZED)  # malloc is the sanitizer's
  endif()
  target_link_options(attendant_build INTERFACE -fsanitize=${ATTENDANT_SANITIZE})
endif()
if(ATTENDANT_SANITIZE MATCHES thread)
  # Protobuf's maps have two members more where it is defined, and the distribution's library does not know them.
  target_compile_options(attendant_build INTERFACE -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1 -DATTENDANT_TSAN=1)
endif()

# Warnings, for what is written by hand.
add_library(attendant_warnings INTERFACE)
target_compile_options(attendant_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wshadow -Wconversion>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety -Werror=thread-safety>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)

# PCH, below: the family of PrecompiledHeaders.cmake that the target uses, or none.

# With ATTENDANT_UNITY the compiler takes eight sources at a time. A build from nothing takes 60 % less of processor
# time, a changed file more: the quick start and the image do so, the presets do not.
option(ATTENDANT_UNITY "Compile several sources at a time" OFF)
function(attendant_unity name)
  if(ATTENDANT_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # To g++ a source that another one includes is a header. It warns of a class there that has a private type.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    if(ARGN)
      set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

# attendant_library(NAME SOURCES a.cc ... [PUBLIC lib ...] [PRIVATE lib ...] [PCH core] [ALONE b.cc ...])
# ALONE: sources of one shape, whose private names are the same. A unity build leaves them apart.
function(attendant_library name)
  cmake_parse_arguments(arg "" "PCH" "SOURCES;PUBLIC;PRIVATE;ALONE" ${ARGN})
  list(APPEND arg_SOURCES ${arg_ALONE})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    # The first of each is for the build alone: a library that is installed does not ask for it.
    target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:attendant_build> ${arg_PUBLIC}
                          PRIVATE $<BUILD_INTERFACE:attendant_warnings> ${arg_PRIVATE})
    attendant_precompiled(${name} "${arg_PCH}" core)
    attendant_unity(${name} ${arg_ALONE})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE attendant_build ${arg_PUBLIC})
  endif()
endfunction()

# A program of the tsan preset: ThreadSanitizer is told what order the distribution's Abseil and gRPC make.
function(attendant_tell_order program)
  if(NOT ATTENDANT_SANITIZE MATCHES thread)
    return()
  endif()
  target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/tsan_absl.cc)
  target_link_libraries(${program} PRIVATE absl::synchronization absl::time)
  if(TARGET gRPC::grpc++)
    target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/tsan_grpc.cc)
    target_link_libraries(${program} PRIVATE gRPC::grpc++)
  endif()
endfunction()

# attendant_program(NAME OUTPUT file-name SOURCES a.cc ... LIBRARIES lib ... [PCH core])
function(attendant_program name)
  cmake_parse_arguments(arg "" "OUTPUT;PCH" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE attendant_build attendant_warnings ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${arg_OUTPUT})
  attendant_tell_order(${name})
  attendant_precompiled(${name} "${arg_PCH}" core)
endfunction()

# Test sources are not worth the last optimizations: a third of their compile time.
add_library(attendant_test_options INTERFACE)
target_compile_options(attendant_test_options INTERFACE $<$<CONFIG:Release>:-O1>)

# The limits of one test and of one suite, on a machine that is busy. The thread sanitizer takes many times as long for
# kernels, and for the emulated GPU.
set(attendant_test_seconds 300)
set(attendant_suite_seconds 1800)
if(ATTENDANT_SANITIZE)
  set(attendant_test_seconds 5400)
  set(attendant_suite_seconds 5400)
endif()

# attendant_test(NAME SOURCES a_test.cc ... LIBRARIES lib ... [PCH test]): one GoogleTest program; each of its tests is
# known to ctest. Tests run in the source tree's root, so that golden files have one name.
function(attendant_test name)
  if(NOT TARGET GTest::gtest_main)
    return()  # kernels alone, see KernelDependencies.cmake
  endif()
  cmake_parse_arguments(arg "" "PCH" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  attendant_precompiled(${name} "${arg_PCH}" test)
  target_link_libraries(${name} PRIVATE attendant_build attendant_test_options attendant_warnings
                        ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  attendant_tell_order(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  gtest_discover_tests(${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${attendant_test_seconds})
endfunction()

# attendant_embedded_files(VARIABLE FUNCTION name HEADER x.h FILES a b ...): files of this folder become a source, whose
# path goes to VARIABLE; it defines FUNCTION of HEADER, so that the program needs no files beside it when it runs.
function(attendant_embedded_files variable)
  cmake_parse_arguments(arg "" "FUNCTION;HEADER" "FILES" ${ARGN})
  list(TRANSFORM arg_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${variable}.cc)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${arg_FILES}" -DOUTPUT=${source} -DFUNCTION=${arg_FUNCTION}
            -DHEADER=${arg_HEADER} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${arg_FILES} ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake
    VERBATIM)
  set(${variable} ${source} PARENT_SCOPE)
endfunction()

# attendant_benchmark(NAME SOURCES a.cc ... LIBRARIES lib ...): one Google Benchmark program in bin/. Without that
# library it is left out, and one line says so.
function(attendant_benchmark name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(TARGET benchmark::benchmark)
    attendant_program(${name} OUTPUT ${name} SOURCES ${arg_SOURCES}
                      LIBRARIES ${arg_LIBRARIES} benchmark::benchmark)
  else()
    message(STATUS "${name} is left out: it needs Google Benchmark (libbenchmark-dev)")
  endif()
endfunction()
