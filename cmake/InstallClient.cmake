# SPDX-License-Identifier: Apache-2.0
# The C++ client, for programs that find it with find_package(attendant_client CONFIG) and link attendant::client.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(attendant_client_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attendant_client)
set_target_properties(attendant_client PROPERTIES EXPORT_NAME client)
set_target_properties(attendant_client_messages PROPERTIES EXPORT_NAME client_messages)

install(TARGETS attendant_client attendant_client_messages EXPORT attendant_client
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attendant)
install(EXPORT attendant_client NAMESPACE attendant:: FILE attendant_client-targets.cmake
        DESTINATION ${attendant_client_cmake_dir})

# Before 1.0 a minor version may change the interface.
set(version_file ${CMAKE_CURRENT_BINARY_DIR}/attendant_client-config-version.cmake)
write_basic_package_version_file(${version_file} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/attendant_client-config.cmake ${version_file}
        DESTINATION ${attendant_client_cmake_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE TYPE DOC)
