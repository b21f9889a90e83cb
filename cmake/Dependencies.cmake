# SPDX-License-Identifier: Apache-2.0
# The libraries that Attendant stands on, all from Debian (deploy/install-deps.sh installs them).
include_guard()

include(KernelDependencies)
include(ClientDependencies)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS SSL)
find_package(CLI11 CONFIG REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc)
find_package(Boost 1.74 REQUIRED)  # Asio and Beast, which are headers
find_package(ZLIB REQUIRED)
find_package(simdjson REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(pangocairo REQUIRED IMPORTED_TARGET pangocairo)  # and cairo, which draws
