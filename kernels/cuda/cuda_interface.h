/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_CUDA_INTERFACE_H_
#define KERNELS_CUDA_CUDA_INTERFACE_H_

#include <stdint.h>

#include "kernels/cuda/cuda_model.h"

/* What libattendant_cuda.so offers, in C: it may be built by another compiler, against another
 * Abseil or none, and is found at run time (kernels/backends/cuda_library.h). One symbol,
 * attendant_cuda_interface, answers with a table of functions.
 *
 * Words for dimensions are those of kernels/core/shape.h. Every tensor is row-major. Pointers are
 * to host memory. Nothing here throws; no function keeps a pointer of the caller's beyond its call.
 *
 * Threads: a model may be used by many threads at once, a session by one at a time; different
 * sessions run side by side. Models outlive their sessions.
 *
 * Change it only together with ATTENDANT_CUDA_INTERFACE_VERSION: a library of another version is
 * refused. */
#define ATTENDANT_CUDA_INTERFACE_VERSION 6u

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ATTENDANT_CUDA_OK = 0,
  ATTENDANT_CUDA_INVALID_ARGUMENT = 1,
  ATTENDANT_CUDA_RESOURCE_EXHAUSTED = 2, /* the device's or the pinned memory does not suffice */
  ATTENDANT_CUDA_UNIMPLEMENTED = 3,      /* the device cannot do this */
  ATTENDANT_CUDA_UNAVAILABLE = 4,        /* no driver, no device */
  ATTENDANT_CUDA_INTERNAL = 5,           /* this call failed; the next may succeed */
  ATTENDANT_CUDA_DEVICE_LOST = 6         /* nothing works on this device until the process ends */
};

typedef struct {
  int32_t code;
  char message[252]; /* ends with 0; empty when all is well */
} AttendantCudaStatus;

enum {
  ATTENDANT_CUDA_POOL_NONE = 0,
  ATTENDANT_CUDA_POOL_MEAN = 1,
  ATTENDANT_CUDA_POOL_CLS = 2,
  ATTENDANT_CUDA_POOL_MAX = 3,
  ATTENDANT_CUDA_POOL_LAST = 4
};

typedef struct {
  char name[128];
  int32_t compute_capability; /* 10 * major + minor: 80, 90, 100 */
  int32_t multiprocessors;
  int64_t memory_bytes;
  uint32_t dtypes; /* bit 1 << dtype for each that is fast here */
} AttendantCudaDevice;

typedef struct {
  int64_t max_batch_tokens;
  int64_t max_batch_sequences;
} AttendantCudaLimits;

/* The caller has checked the batch: ids, positions and segments are inside the model's tables,
 * sequences are not empty and the batch is within the session's limits. */
typedef struct {
  int64_t tokens, batch;
  const int32_t* token_ids;   /* [tokens] */
  const int32_t* positions;   /* [tokens] */
  const int32_t* segment_ids; /* [tokens] */
  const int64_t* seq_starts;  /* [batch + 1] */
  const float* token_scales;  /* [tokens], of a model that scales_tokens: factors of embeddings */
  const int64_t* keys; /* [batch]: tokens attend to so many of the sequence's first; null: all */
} AttendantCudaBatch;

typedef struct {
  int32_t last_hidden_state; /* 0 or 1 */
  int32_t pooling;
  int32_t normalize; /* 0 or 1 */
  int64_t dims;      /* of the pooled vector, kept; 0 keeps all */
} AttendantCudaSequenceOutputs;

/* See LayerOutputs in kernels/core/outputs.h. */
typedef struct {
  const int32_t* attention_layers;
  int64_t num_attention_layers;
  const int32_t* attention_heads;
  int64_t num_attention_heads;
  float* attention_weights; /* [attention_layers, attention_heads, queries, len] */
  const int32_t* hidden_layers;
  int64_t num_hidden_layers;
  float* hidden_states;      /* [hidden_layers, len, hidden] */
  int64_t attention_queries; /* queries: the first so many tokens, at most len; 0: len */
} AttendantCudaLayerOutputs;

typedef struct {
  const AttendantCudaSequenceOutputs* sequences; /* [batch] */
  const AttendantCudaLayerOutputs* layers;       /* [batch], or null: none */
} AttendantCudaOutputSpec;

/* The session's own memory, until its next run. */
typedef struct {
  const float* last_hidden_state; /* [tokens, hidden]; null when none asks */
  const float* pooled;            /* [batch, hidden]; row i fills its first `dims` */
} AttendantCudaOutputs;

/* What one run was made of, in the order of a layer. */
enum {
  ATTENDANT_CUDA_GROUP_EMBED = 0,
  ATTENDANT_CUDA_GROUP_MATMULS,
  ATTENDANT_CUDA_GROUP_ATTENTION,
  ATTENDANT_CUDA_GROUP_NORM,
  ATTENDANT_CUDA_GROUP_ACTIVATION,
  ATTENDANT_CUDA_GROUP_OUTPUT, /* pooling, layers that were asked for, copies */
  ATTENDANT_CUDA_NUM_GROUPS
};

typedef struct {
  double busy_seconds; /* of the device, over all runs */
  /* Runs whose groups were timed: one in many, because these take longer. */
  int64_t sampled_runs;
  double group_seconds[ATTENDANT_CUDA_NUM_GROUPS]; /* over the sampled runs */
} AttendantCudaProfile;

typedef struct AttendantCudaModel AttendantCudaModel;     /* weights on one device */
typedef struct AttendantCudaSession AttendantCudaSession; /* streams, scratch memory, graphs */

typedef struct {
  uint32_t version; /* ATTENDANT_CUDA_INTERFACE_VERSION */
  /* E.g. "CUDA 13.0, sm_80 sm_90a sm_100"; never null. */
  const char* build;

  /* Writes how many devices there are; UNAVAILABLE, saying why, when that cannot be asked. */
  AttendantCudaStatus (*count_devices)(int32_t* count);
  AttendantCudaStatus (*describe_device)(int32_t device, AttendantCudaDevice* description);
  AttendantCudaStatus (*device_memory)(int32_t device, int64_t* free_bytes, int64_t* total_bytes);

  /* Converts and uploads the weights. UNIMPLEMENTED: a dimension that the kernels lack, or a dtype
   * that the device lacks. On success *model must be destroyed, else it is null. */
  AttendantCudaStatus (*create_model)(int32_t device, const AttendantCudaConfig* config,
                                      const AttendantCudaWeights* weights, int32_t dtype,
                                      AttendantCudaModel** model);
  void (*destroy_model)(AttendantCudaModel* model);
  int64_t (*model_bytes)(const AttendantCudaModel* model);

  /* Allocates everything, chooses the matmuls' algorithms and records graphs. */
  AttendantCudaStatus (*create_session)(AttendantCudaModel* model,
                                        const AttendantCudaLimits* limits,
                                        AttendantCudaSession** session);
  void (*destroy_session)(AttendantCudaSession* session);
  int64_t (*session_bytes)(const AttendantCudaSession* session); /* on the device */

  /* Returns when the answer is in `outputs` and in the memory that `spec` names. */
  AttendantCudaStatus (*run)(AttendantCudaSession* session, const AttendantCudaBatch* batch,
                             const AttendantCudaOutputSpec* spec, AttendantCudaOutputs* outputs);
  /* Any thread may ask, also while the session runs. */
  void (*profile)(const AttendantCudaSession* session, AttendantCudaProfile* profile);
} AttendantCudaInterface;

/* The table of `version`, or null: this library speaks another. The table is never freed. */
typedef const AttendantCudaInterface* (*AttendantCudaInterfaceFunction)(uint32_t version);
#define ATTENDANT_CUDA_INTERFACE_SYMBOL "attendant_cuda_interface"

#ifdef __cplusplus
}
#endif

#endif /* KERNELS_CUDA_CUDA_INTERFACE_H_ */
