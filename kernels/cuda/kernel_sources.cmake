# SPDX-License-Identifier: Apache-2.0
# Everything behind kernels.h and attention_kernels.h. nvcc compiles it for devices, and the tests compile it for the
# CPU (tests/support/cuda_emulation).
set(attendant_cuda_kernel_sources
  activation_kernel.cu attention_kernels.cc attention_weights_kernel.cu norm_kernel.cu pool_kernel.cu
  simt_attention_kernel.cu tensor_attention_kernel.cu)
list(TRANSFORM attendant_cuda_kernel_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
