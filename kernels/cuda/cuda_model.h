/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_CUDA_MODEL_H_
#define KERNELS_CUDA_CUDA_MODEL_H_

#include <stdint.h>

/* An encoder as create_model of cuda_interface.h takes it: its switches and its weights. Part of
 * that interface, and of its version. */

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ATTENDANT_CUDA_F32 = 0, /* matmuls in f32, never TF32 */
  ATTENDANT_CUDA_BF16 = 1,
  ATTENDANT_CUDA_F16 = 2,
  ATTENDANT_CUDA_FP8 = 3 /* matmuls of e4m3 with a scale for each row, all else bf16 */
};

enum {
  ATTENDANT_CUDA_GELU_ERF = 0,
  ATTENDANT_CUDA_GELU_TANH = 1,
  ATTENDANT_CUDA_RELU = 2,
  ATTENDANT_CUDA_SILU = 3
};

/* As NormPlace in kernels/core/encoder_config.h. */
enum { ATTENDANT_CUDA_NORM_POST = 0, ATTENDANT_CUDA_NORM_PRE = 1, ATTENDANT_CUDA_NORM_BOTH = 2 };

/* As EncoderConfig, whose comments say what each switch is; 0 is BERT's choice. What an encoder
 * lacks besides, a bias, a norm or a table, is null in its weights. */
typedef struct {
  int64_t layers, heads, hidden, ffn, vocab, max_positions, segment_types;
  float layer_norm_epsilon;
  int32_t activation;
  int64_t head_width;    /* head_dim; 0: hidden / heads */
  int64_t kv_heads;      /* 0: heads */
  float query_scale;     /* 0: 1 / sqrt(head_dim) */
  float embedding_scale; /* 0: 1 */
  int32_t norm_place;
  int32_t rms_norm; /* 0 or 1, as the next two */
  int32_t gated_ffn;
  int32_t causal;
  int32_t scales_tokens; /* 0 or 1: batches have token_scales */
  int64_t window;        /* of local layers: the positions before and after a query that it sees */
  int64_t embedding_width; /* of the embeddings and their norm; 0: hidden, and no projection */
} AttendantCudaConfig;

/* context_width is heads * head_dim, key_width kv_heads * head_dim, and input_width embedding_width
 * or hidden. */
typedef struct {
  const float* weight; /* [outputs, inputs] */
  const float* bias;   /* [outputs]; null: zeros */
} AttendantCudaLinear;

typedef struct {
  const float* gamma; /* [hidden]; of embeddings [input_width] */
  const float* beta;  /* likewise; null: zeros */
} AttendantCudaNorm;

typedef struct {
  AttendantCudaLinear query;            /* [context_width, hidden] */
  AttendantCudaLinear key, value;       /* [key_width, hidden] */
  AttendantCudaLinear attention_output; /* [hidden, context_width] */
  /* Gamma is null for the attention norm of layer 0 without one, which needs norms before it. */
  AttendantCudaNorm attention_norm;
  AttendantCudaLinear ffn_gate; /* [ffn, hidden], of a gated ffn alone */
  AttendantCudaLinear ffn_up;   /* [ffn, hidden] */
  AttendantCudaLinear ffn_down; /* [hidden, ffn] */
  AttendantCudaNorm ffn_norm;
  /* Of NORM_BOTH; of NORM_POST, where gamma is not null, a second norm behind attention: states =
   * attention_norm(states + attention_output_norm(states + branch)). */
  AttendantCudaNorm attention_output_norm;
  AttendantCudaNorm ffn_output_norm; /* of NORM_BOTH alone */
  const float* query_norm; /* [head_dim], the gamma of an RMS norm of each head; both or none */
  const float* key_norm;
  /* Of all heads together, [context_width] and [key_width]; gamma null: none, of both. */
  AttendantCudaNorm whole_query_norm, whole_key_norm;
  int32_t local; /* 0 or 1: a query sees the keys of its window alone; last, behind all pointers */
} AttendantCudaLayer;

typedef struct {
  const float* token_embedding;             /* [vocab, input_width] */
  const float* position_embedding;          /* [max_positions, input_width], or null */
  const float* segment_embedding;           /* [segment_types, input_width] */
  AttendantCudaNorm embedding_norm;         /* gamma null: none, as final_norm */
  AttendantCudaLinear embedding_projection; /* [hidden, embedding_width], where there is that */
  const AttendantCudaLayer* layers;         /* [layers], perhaps several of the same tensors */
  AttendantCudaNorm final_norm;
  /* Null, or [max_positions, head_dim]: cosines and then sines of a position's rotary angles. */
  const float* rotary;
  const float* local_rotary; /* the same of local layers, where there are some */
  /* Null, or what is added to a score by the distance from the query's position to the key's, from
   * 1 - max_positions on: [heads, 2 * max_positions - 1]. */
  const float* score_by_distance;
} AttendantCudaWeights;

#ifdef __cplusplus
}
#endif

#endif /* KERNELS_CUDA_CUDA_MODEL_H_ */
