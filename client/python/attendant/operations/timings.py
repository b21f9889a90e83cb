# SPDX-License-Identifier: Apache-2.0
"""Where the time of a request went."""

from __future__ import annotations

from dataclasses import dataclass

from attendant.v1 import encoder_pb2 as pb


@dataclass(frozen=True)
class Timings:
    """Inside the server, in microseconds."""

    tokenize_us: int  # reading the request and tokenizing
    queue_us: int     # until the last of its sequences entered a batch
    compute_us: int   # summed over the batches of its sequences
    total_us: int

    @staticmethod
    def of(timings: pb.Timings) -> Timings:
        return Timings(timings.tokenize_us, timings.queue_us, timings.compute_us, timings.total_us)
