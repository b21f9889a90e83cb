# SPDX-License-Identifier: Apache-2.0
"""Clients that load and unload models, against a server that answers as it is told."""

import asyncio

import grpc
import pytest

import attendant
from attendant import operations
from fake_server import fails, model

CODE = grpc.StatusCode


def test_models_are_named(fake, connect):
    with connect() as client:
        assert client.load_model("toy") is None
        assert client.unload_model("caf\u00e9") is None
    assert fake.changes == [("Load", "toy"), ("Unload", "caf\u00e9")]


@pytest.mark.parametrize("method", ["load_model", "unload_model"])
def test_a_server_that_makes_no_changes_is_not_asked_again(fake, connect, method):
    """It answers UNAVAILABLE, as Triton does."""
    fake.script = [fails(CODE.UNAVAILABLE, "explicit model load / unload is not allowed: why")] * 2
    with connect() as client, pytest.raises(attendant.PermissionDeniedError, match="not allowed: why"):
        getattr(client, method)("toy")
    assert len(fake.changes) == 1


def test_a_server_that_is_starting_is_asked_again(fake, connect):
    fake.script = [fails(CODE.UNAVAILABLE)] * 2
    with connect() as client:
        client.load_model("toy")
    assert len(fake.changes) == 3


@pytest.mark.parametrize("code, error", [(CODE.NOT_FOUND, attendant.NotFoundError),
                                         (CODE.FAILED_PRECONDITION, attendant.AttendantError)])
def test_errors_of_a_load(fake, connect, code, error):
    fake.script = [fails(code, "token 0 is not finite")]
    with connect() as client, pytest.raises(error, match="^token 0 is not finite$") as caught:
        client.load_model("toy")
    assert caught.value.code is code


def in_turn(kind, target, *calls):
    """Calls of one client; the errors of the server among them."""
    errors = []

    async def awaited():
        async with kind(target) as client:
            for call in calls:
                try:
                    await call(client)
                except attendant.AttendantError as error:
                    errors.append(error)

    if kind is attendant.AsyncClient:
        asyncio.run(awaited())
        return errors
    with kind(target) as client:
        for call in calls:
            try:
                call(client)
            except attendant.AttendantError as error:
                errors.append(error)
    return errors


@pytest.mark.parametrize("kind", [attendant.Client, attendant.AsyncClient])
@pytest.mark.parametrize("method", ["load_model", "unload_model"])
@pytest.mark.parametrize("script", [[], [fails(CODE.DEADLINE_EXCEEDED)]])
def test_the_only_model_is_asked_for_again(fake, kind, method, script):
    """After an error too: the server goes on with a load."""
    def embed(client):
        return client.embed("a")

    def change(client):
        fake.models, fake.script = [model("n")], list(script)
        return getattr(client.with_options(timeout=5), method)("n")

    assert len(in_turn(kind, fake.target, embed, embed, change, embed)) == len(script)
    assert [request.model for request in fake.requests] == ["m", "m", "n"]
    listings = len(fake.metadata) - len(fake.requests)
    assert listings == 2, "it is remembered between changes"


@pytest.mark.parametrize("method", ["load_model", "unload_model"])
def test_a_name_that_is_no_text(connect, method):
    with connect() as client, pytest.raises(TypeError, match="name is 5: it must be a text"):
        getattr(client, method)(5)


def test_a_stream_takes_no_changes(fake):
    with attendant.Client(fake.target) as client, pytest.raises(ValueError, match="has no stream"):
        list(client.stream([operations.load_model("toy")]))
