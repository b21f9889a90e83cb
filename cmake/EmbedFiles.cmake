# SPDX-License-Identifier: Apache-2.0
# A script: writes the contents of FILES into the C++ source OUTPUT, which defines the function FUNCTION of HEADER:
# cmake -DFILES=a;b -DOUTPUT=x.cc -DHEADER=x.h -DFUNCTION=Files -P EmbedFiles.cmake
set(entries "")
foreach(file IN LISTS FILES)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  get_filename_component(name ${file} NAME)
  string(APPEND entries "    {\"${name}\", absl::string_view(\"${bytes}\", sizeof(\"${bytes}\") - 1)},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/EmbedFiles.cmake.
#include \"${HEADER}\"

namespace attendant {

std::span<const EmbeddedFile> ${FUNCTION}() {
  static constexpr EmbeddedFile kFiles[] = {
${entries}  };
  return kFiles;
}

}  // namespace attendant
")
