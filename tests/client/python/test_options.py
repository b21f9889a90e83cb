# SPDX-License-Identifier: Apache-2.0
"""The arguments of clients, as far as they concern all calls."""

import pytest

import attendant


@pytest.mark.parametrize("target", ["http://127.0.0.1:8001", "https://example.com"])
@pytest.mark.parametrize("client", [attendant.Client, attendant.AsyncClient])
def test_a_target_is_no_address_of_http(client, target):
    with pytest.raises(ValueError, match="must be HOST:PORT, of the server's gRPC port"):
        client(target)


def test_no_concurrency(connect):
    with pytest.raises(ValueError, match="max_(concurrency|workers)"), connect(max_concurrency=0) as client:
        client.embed(["a", "b"], batch_size=1)


@pytest.mark.parametrize("timeout", [1e12, float("inf")])
def test_an_endless_timeout(connect, timeout):
    with connect(timeout=timeout) as client:
        assert client.embed("abc").shape == (2,)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_that_is_none(connect, timeout):
    with pytest.raises(ValueError, match="timeout is .*: it must be above 0"), connect(timeout=timeout) as client:
        client.embed("abc")
    with attendant.Client() as client, pytest.raises(ValueError, match="timeout is"):
        client.with_options(timeout=timeout)
