# SPDX-License-Identifier: Apache-2.0
"""The arguments of clients, as far as they concern all calls."""

import pytest

import attendant
from attendant import operations


@pytest.mark.parametrize("target", ["http://127.0.0.1:8001", "https://example.com"])
@pytest.mark.parametrize("client", [attendant.Client, attendant.AsyncClient])
def test_a_target_is_no_address_of_http(client, target):
    with pytest.raises(ValueError, match="must be HOST:PORT, of the server's gRPC port"):
        client(target)


@pytest.mark.parametrize("target", ["ipv4:127.0.0.1:65537,127.0.0.1:8001", "ipv6:[::1]:8001,[::1]:65537"])
@pytest.mark.parametrize("client", [attendant.Client, attendant.AsyncClient])
def test_each_address_of_a_target_has_a_port(client, target):
    with pytest.raises(ValueError, match="with a port from 0 to 65535"):
        client(target)


def test_a_target_of_several_addresses(fake):
    with attendant.Client(f"ipv4:{fake.target},127.0.0.1:65535", model="m") as client:
        assert client.embed("abc").shape == (2,)


def test_no_concurrency(connect):
    with pytest.raises(ValueError, match="max_(concurrency|workers)"), connect(max_concurrency=0) as client:
        client.embed(["a", "b"], batch_size=1)


@pytest.mark.parametrize("fields, error, message", [
    ({"max_attempts": "3"}, TypeError, "max_attempts is '3': it must be a whole number"),
    ({"max_attempts": 2.5}, TypeError, "max_attempts is 2.5: it must be a whole number"),
    ({"max_attempts": 0}, ValueError, "max_attempts is 0: it must be at least 1"),
    ({"first_delay": "1"}, TypeError, "first_delay is '1': it must be a number of seconds"),
    ({"max_delay": None}, TypeError, "max_delay is None: it must be a number of seconds"),
    ({"first_delay": -1}, ValueError, "Retry.* needs 0 <= first_delay <= max_delay"),
    ({"first_delay": 6}, ValueError, "Retry.* needs 0 <= first_delay <= max_delay"),
    ({"first_delay": float("nan")}, ValueError, "Retry.* needs 0 <= first_delay <= max_delay"),
    ({"max_delay": float("nan")}, ValueError, "Retry.* needs 0 <= first_delay <= max_delay")])
def test_a_retry_that_cannot_be(fields, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        attendant.Retry(**fields)


@pytest.mark.parametrize("count", ["4", 4.0, None])
@pytest.mark.parametrize("argument, call", [
    ("max_concurrency", lambda connect, count: connect(max_concurrency=count).embed("abc")),
    ("batch_size", lambda connect, count: connect().embed(["abc"], batch_size=count)),
    ("chunk_tokens", lambda connect, count: operations.embed_chunks("abc", count)),
    ("max_in_flight", lambda connect, count: list(
        attendant.Client(model="m").stream([operations.embed("abc")], max_in_flight=count))),
])
def test_a_count_that_is_no_whole_number(fake, connect, argument, call, count):
    with pytest.raises(TypeError, match=f"^{argument} is {count!r}: it must be a whole number$"):
        call(connect, count)
    assert not fake.requests


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


def test_a_timeout_that_is_no_number(connect):
    with pytest.raises(TypeError, match="timeout is '5': it must be a number of seconds, or None"), (
            connect(timeout="5")) as client:
        client.embed("abc")
    with attendant.Client() as client, pytest.raises(TypeError, match="timeout is '5'"):
        client.with_options(timeout="5")
