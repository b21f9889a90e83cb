# SPDX-License-Identifier: Apache-2.0
# CPack reads it before it makes a package. Without dpkg-shlibdeps it would make one that depends on no library.
find_program(attendant_shlibdeps dpkg-shlibdeps)
if(NOT attendant_shlibdeps)
  message(FATAL_ERROR "dpkg-shlibdeps is not installed: deploy/install-deps.sh build installs it")
endif()
