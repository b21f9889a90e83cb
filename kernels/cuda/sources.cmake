# SPDX-License-Identifier: Apache-2.0
# The sources of libattendant_cuda.so. The tests compile them for the CPU too (tests/support/cuda_emulation).

# The device code behind kernels/kernels.h and kernels/attention_kernels.h: nvcc, or the emulated device.
set(attendant_cuda_kernel_sources
  kernels/activation_kernel.cu kernels/attention_kernels.cc kernels/attention_weights_kernel.cu kernels/norm_kernel.cu
  kernels/place_kernel.cu kernels/pool_kernel.cu kernels/simt_attention_kernel.cu kernels/tensor_attention_kernel.cu
  kernels/whole_norm_kernel.cu)

# Everything between the C interface and the device code: host code, on the CUDA runtime or the emulated one.
set(attendant_cuda_engine_sources
  engine/interface.cc engine/batch_layout.cc engine/encoder_pass.cc engine/group_timer.cc engine/matmul_probe.cc
  engine/output_pipe.cc engine/session.cc engine/session_buffers.cc engine/session_observer.cc engine/tuner.cc
  model/model.cc model/model_check.cc model/model_upload.cc model/weight_upload.cc matmul/algorithm_table.cc
  matmul/matmul.cc runtime/device.cc runtime/handles.cc runtime/status.cc)

list(TRANSFORM attendant_cuda_kernel_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM attendant_cuda_engine_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)

# The shared library compiles it once more: a unity build must leave it a member of its own.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/engine/interface.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
