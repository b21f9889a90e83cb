# SPDX-License-Identifier: Apache-2.0
# Part of oneDNN's own build (CMAKE_PROJECT_INCLUDE): the headers that most of its sources include are compiled once for
# each of its three libraries. Left out are headers that say `using namespace` for the whole file.

function(onednn_precompile target)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/src/")
  target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${ARGN}>")
endfunction()

function(onednn_precompile_all)
  onednn_precompile(dnnl_common common/memory_tracking.hpp common/primitive.hpp common/primitive_desc_iface.hpp
    common/stream.hpp common/verbose.hpp)
  onednn_precompile(dnnl_cpu common/dnnl_thread.hpp common/reorder.hpp cpu/cpu_engine.hpp cpu/cpu_primitive.hpp
    cpu/ref_io_helper.hpp cpu/reorder/cpu_reorder_pd.hpp cpu/simple_q10n.hpp cpu/x64/jit_generator.hpp)
  onednn_precompile(dnnl_cpu_x64 cpu/x64/brgemm/brgemm.hpp cpu/x64/injectors/jit_uni_postops_injector.hpp
    cpu/x64/jit_brgemm_primitive_conf.hpp cpu/x64/matmul/brgemm_matmul.hpp)
endfunction()

cmake_language(DEFER CALL onednn_precompile_all)
