# SPDX-License-Identifier: Apache-2.0
# cmake --install build/release, and packages: cpack --config build/release/CPackConfig.cmake
include(GNUInstallDirs)

# Libraries of ours, and oneDNN where it is not the distribution's, lie apart from the system's.
set(attendant_private_dir ${CMAKE_INSTALL_LIBDIR}/attendant)
file(RELATIVE_PATH attendant_private_path /${CMAKE_INSTALL_BINDIR} /${attendant_private_dir})
set_target_properties(attendant_server PROPERTIES INSTALL_RPATH "$ORIGIN/${attendant_private_path}")

install(TARGETS attendant_server attendant_command RUNTIME)
install(FILES README.md CHANGELOG.md LICENSE TYPE DOC)
install(DIRECTORY docs TYPE DOC FILES_MATCHING REGEX "\\.(md|png|svg)$")
install(FILES deploy/debian/attendant.service DESTINATION lib/systemd/system)

if(NOT dnnl_DIR MATCHES "^/usr/lib")
  install(IMPORTED_RUNTIME_ARTIFACTS DNNL::dnnl LIBRARY DESTINATION ${attendant_private_dir})
endif()
# Not in the package, which cannot depend on NVIDIA's libraries: cmake --install build/release --component cuda. The server
# looks for it in ../lib/attendant.
if(TARGET attendant_cuda)
  install(TARGETS attendant_cuda LIBRARY DESTINATION lib/attendant COMPONENT cuda EXCLUDE_FROM_ALL)
endif()

# A package does not build what is not installed.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR attendant)
set(CPACK_PACKAGE_CONTACT "the Attendant developers <attendant@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "inference server for transformer encoders, over gRPC and HTTP")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackagePrograms.cmake)
if(NOT dnnl_DIR MATCHES "^/usr/lib")
  get_target_property(attendant_dnnl DNNL::dnnl LOCATION)
  get_filename_component(attendant_dnnl ${attendant_dnnl} DIRECTORY)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${attendant_dnnl})
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS fonts-dejavu-core)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
                                       ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
                                       ${PROJECT_SOURCE_DIR}/deploy/debian/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
