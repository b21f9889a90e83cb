// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/checkpoints/families/family.h"

// The model families; each has its own source file.
namespace attendant {

extern const Family kAlbert;  // BERT whose layers share weights, and narrow embeddings
extern const Family kBert;
extern const Family kDebertaV2;   // BERT with disentangled attention
extern const Family kDistilBert;  // no segments, other names
extern const Family kElectra;     // BERT whose embeddings may be narrower
extern const Family kEsm;         // pre-norm, rotary, a token whose embedding is zeros
extern const Family kEuroBert;    // RMS norms, rotary, gated ffn, shared keys
extern const Family kGemma3;      // four RMS norms a layer, local layers, shared keys
extern const Family kGte;         // rotary, gated ffn
extern const Family kJinaBert;    // BERT with ALiBi and a gated ffn
extern const Family kJinaQkNorm;  // kJinaBert with more norms
extern const Family kJinaV3;      // BERT with rotary positions
extern const Family kLlama;       // causal, RMS norms, shared keys
extern const Family kMistral;     // the same, with a window
extern const Family kModernBert;  // pre-norm, rotary, local layers, gated ffn
extern const Family kMpnet;       // BERT with a bias of scores by distance
extern const Family kNeoBert;     // pre-norm, RMS norms, rotary, gated ffn
extern const Family kNomicBert;   // rotary, gated ffn, other names
extern const Family kQwen2;       // causal, RMS norms, shared keys, biases
extern const Family kQwen3;       // causal, RMS norms, shared keys
extern const Family kRoberta;     // BERT whose positions start behind the padding token's id
extern const Family kT5;          // RMS norms, bias of scores by distance, no positions

}  // namespace attendant
