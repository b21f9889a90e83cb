#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compiler.sh COMPILER ARGUMENT... SOURCE: compiles a source of oneDNN. Most of them write the machine code of a kernel,
# once, or choose it: they are not optimized, which takes half the time. The sources here run with each matmul or move
# weights; they are optimized, and the headers that were compiled for the others do not fit them.
for source; do :; done
case "${source##*/}" in
  primitive.cpp | primitive_exec_types.cpp | primitive_iface.cpp | memory.cpp | memory_desc_wrapper.cpp | \
    memory_storage.cpp | scratchpad.cpp | stream.cpp | amx_tile_configure.cpp | \
    brgemm.cpp | brgemm_matmul.cpp | cpu_reorder_regular_f32_f32.cpp | cpu_reorder_regular_f32_bf16.cpp | \
    cpu_reorder_regular_s8.cpp)
    exec "$@" -Wno-invalid-pch ;;
esac
exec "$@" -O0 -Wno-cpp
