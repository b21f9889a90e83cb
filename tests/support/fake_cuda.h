/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_FAKE_CUDA_H_
#define TESTS_SUPPORT_FAKE_CUDA_H_

#include "kernels/cuda/cuda_interface.h"

/* A library with the interface of libattendant_cuda.so that computes nothing and does as it is told:
 * for what happens between the interface and the server. A test gets at the levers by dlsym. */
#define FAKE_CUDA_LEVERS_SYMBOL "fake_cuda_levers"

typedef struct {
  int32_t devices;
  uint32_t dtypes; /* of every device */
  uint32_t version;
  /* What the functions answer from now on: {0, ""} is success. */
  AttendantCudaStatus count_devices, create_model, create_session, run;
  /* What has happened. */
  int32_t models, sessions; /* that live */
  int32_t runs;
  int32_t session_devices[16]; /* sessions that live on each device */
  AttendantCudaConfig config;  /* of the last model */
} FakeCudaLevers;

typedef FakeCudaLevers* (*FakeCudaLeversFunction)(void);

#endif /* TESTS_SUPPORT_FAKE_CUDA_H_ */
