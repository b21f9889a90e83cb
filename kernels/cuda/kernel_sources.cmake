# SPDX-License-Identifier: Apache-2.0
# Everything behind kernels/kernels.h and kernels/attention_kernels.h. nvcc compiles it for devices, and the tests compile it for the
# CPU (tests/support/cuda_emulation).
set(attendant_cuda_kernel_sources
  kernels/activation_kernel.cu kernels/attention_kernels.cc kernels/attention_weights_kernel.cu kernels/norm_kernel.cu kernels/pool_kernel.cu
  kernels/simt_attention_kernel.cu kernels/tensor_attention_kernel.cu)
list(TRANSFORM attendant_cuda_kernel_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
