# SPDX-License-Identifier: Apache-2.0
"""What the processor of this machine has instructions for."""

import pathlib

NEEDS = {"f32": {"avx2"}, "bf16": {"avx512_bf16", "amx_bf16"}, "int8": {"avx2"}}


def computes_in(dtype):
    """Whether the CPU back end computes models in it."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    flags = next(line for line in lines if line.startswith("flags")).split()
    return not NEEDS[dtype].isdisjoint(flags)
