# SPDX-License-Identifier: Apache-2.0
# Everything between the C interface and kernels.h, host code. With the toolkit it becomes libattendant_cuda.so, and
# the tests build it on an emulated runtime (tests/support/cuda_emulation).
set(attendant_cuda_engine_sources
  algorithm_table.cc batch_layout.cc conversion.cc device.cc encoder_pass.cc group_timer.cc handles.cc interface.cc
  model.cc output_pipe.cc product.cc product_probe.cc session.cc session_buffers.cc session_observer.cc status.cc
  tuner.cc weight_upload.cc)
list(TRANSFORM attendant_cuda_engine_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
