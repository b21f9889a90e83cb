# SPDX-License-Identifier: Apache-2.0
# find_package(attendant_client CONFIG) reads it where the client is installed.
include(CMakeFindDependencyMacro)
find_dependency(absl CONFIG)
find_dependency(Protobuf)
find_dependency(gRPC CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/attendant_client-targets.cmake)
