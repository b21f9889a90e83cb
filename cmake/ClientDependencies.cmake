# SPDX-License-Identifier: Apache-2.0
# The libraries that the C++ client stands on. attendant_client-config.cmake finds them again where it is installed.
include_guard()

find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
