# SPDX-License-Identifier: Apache-2.0
"""Small hostile messages take little memory, whatever they ask for."""

import grpc
import pytest

from harness import memory

MIB = 1 << 20


def test_compressed_messages_are_refused_before_they_are_inflated(server):
    """256 KiB of gzip that would become 256 MiB."""
    peak = memory.peak_bytes(server.pid)
    for path in ("/grpc.health.v1.Health/Check", "/attendant.v1.Encoder/Encode",
                 "/inference.GRPCInferenceService/ModelInfer"):
        with pytest.raises(grpc.RpcError) as error, memory.raw_channel(server.grpc) as channel:
            channel.unary_unary(path)(bytes(256 * MIB), timeout=60, compression=grpc.Compression.Gzip)
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED, error.value
        assert "gzip" in error.value.details()
    assert memory.peak_bytes(server.pid) - peak < 8 * MIB
