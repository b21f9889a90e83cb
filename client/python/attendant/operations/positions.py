# SPDX-License-Identifier: Apache-2.0
"""How the positions of tokens enter attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from attendant.tensors import to_tensor
from attendant.v1 import attention_pb2 as pb


@dataclass(frozen=True)
class Sinusoidal:
    """A table of sines and cosines is added to query and key, with `to_value` to value too."""

    base: float = 10_000
    to_value: bool = False

    def put(self, request: pb.AttendRequest) -> None:
        request.added.sinusoidal.base = self.base
        request.added.to_value = self.to_value


@dataclass(frozen=True, eq=False)
class Learned:
    """`table`, [positions, query_dim], is added to query and key, with `to_value` to value too."""

    table: ArrayLike
    to_value: bool = False

    def put(self, request: pb.AttendRequest) -> None:
        request.added.learned.CopyFrom(to_tensor(self.table))
        request.added.to_value = self.to_value


@dataclass(frozen=True)
class Rotary:
    """Pairs of dimensions turn by an angle: (2d, 2d + 1) if interleaved, else (d, d + query_dim / 2)."""

    base: float = 10_000
    interleaved: bool = False

    def put(self, request: pb.AttendRequest) -> None:
        request.rotary.base = self.base
        request.rotary.interleaved = self.interleaved


@dataclass(frozen=True)
class Alibi:
    """-slope * distance is added to the scores of each head; without slopes those of the paper."""

    slopes: Sequence[float] = ()

    def put(self, request: pb.AttendRequest) -> None:
        request.alibi.SetInParent()
        request.alibi.slopes.extend(self.slopes)


Positions = Sinusoidal | Learned | Rotary | Alibi
