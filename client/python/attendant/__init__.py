# SPDX-License-Identifier: Apache-2.0
"""Client of an Attendant server: embeddings, hidden states, rerankers, classifiers, sparse vectors and attention.

    from attendant import Client
    with Client("127.0.0.1:8001") as client:
        client.embed(["A man is eating.", "Someone eats."])  # numpy, [2, hidden]
"""

from attendant.aio import AsyncClient
from attendant.attention_maps import AttentionMaps
from attendant.channel import Tls
from attendant.client import Client
from attendant.errors import (AttendantError, CancelledError, DeadlineExceededError, InternalError, InvalidArgumentError,
                              NotFoundError, PermissionDeniedError, ResourceExhaustedError, UnauthenticatedError,
                              UnavailableError, UnimplementedError)
from attendant.inputs import PaddedBatch, TokenIds
from attendant.operations.positions import Alibi, Learned, Rotary, Sinusoidal
from attendant.options import Options
from attendant.retry import Retry
from attendant.sentence_encoder import SentenceEncoder

__version__ = "0.1.0"

__all__ = [
    "Alibi", "AsyncClient", "AttendantError", "AttentionMaps", "CancelledError", "Client", "DeadlineExceededError",
    "InternalError", "InvalidArgumentError", "Learned", "NotFoundError", "Options", "PaddedBatch", "PermissionDeniedError",
    "ResourceExhaustedError", "Retry", "Rotary", "SentenceEncoder", "Sinusoidal", "Tls", "TokenIds", "UnauthenticatedError",
    "UnavailableError", "UnimplementedError"]
