# SPDX-License-Identifier: Apache-2.0
# Everything between the C interface and kernels/kernels.h, host code. With the toolkit it becomes libattendant_cuda.so, and
# the tests build it on an emulated runtime (tests/support/cuda_emulation).
set(attendant_cuda_engine_sources
  matmul/algorithm_table.cc engine/batch_layout.cc engine/conversion.cc runtime/device.cc engine/encoder_pass.cc engine/group_timer.cc runtime/handles.cc interface.cc
  engine/model.cc engine/output_pipe.cc matmul/matmul.cc engine/matmul_probe.cc engine/session.cc engine/session_buffers.cc engine/session_observer.cc runtime/status.cc
  engine/tuner.cc engine/weight_upload.cc)
list(TRANSFORM attendant_cuda_engine_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
