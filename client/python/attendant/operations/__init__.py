# SPDX-License-Identifier: Apache-2.0
"""What the server can do. Each function checks its arguments and makes a Job; the clients offer it as a method, and streams
take the jobs themselves."""

from attendant.operations.attend import attend, attention_kinds
from attendant.operations.chunks import embed_chunks
from attendant.operations.embed import embed
from attendant.operations.encode import attention_maps, encode
from attendant.operations.repository import load_model, unload_model
from attendant.operations.scores import classify, rerank
from attendant.operations.status import health, models
from attendant.operations.tokens import classify_tokens, fill_mask, multi_vectors, sparse
from attendant.operations.words import word_weights

__all__ = ["attend", "attention_kinds", "attention_maps", "classify", "classify_tokens", "embed", "embed_chunks", "encode",
           "fill_mask", "health", "load_model", "models", "multi_vectors", "rerank", "sparse", "unload_model",
           "word_weights"]
