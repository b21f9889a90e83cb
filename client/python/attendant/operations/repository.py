# SPDX-License-Identifier: Apache-2.0
"""Loads and unloads models of the server's repository."""

from __future__ import annotations

from typing import Any

from attendant.choices import checked_text
from attendant.job import Job, Request, Rpc
from attendant.v1.messages import load

_pb: Any = load("inference/grpc_service.proto")
_LOAD = Rpc("/inference.GRPCInferenceService/RepositoryModelLoad", _pb["RepositoryModelLoadResponse"])
_UNLOAD = Rpc("/inference.GRPCInferenceService/RepositoryModelUnload", _pb["RepositoryModelUnloadResponse"])


def load_model(name: str) -> Job[None]:
    """Loads a model of the server's repository, or what changed in it since, and waits until it serves. Takes a server with
    --model_control=explicit; if it has API keys, one of the group `admin`.

    A large model may take longer than the usual timeout: client.with_options(timeout=600).load_model(name).
    DeadlineExceededError: the server goes on with it. PermissionDeniedError: the server loads no models for clients, or not
    for this key. NotFoundError: the repository has no such model. Other errors say why it does not load; a model of this name
    that served still does."""
    return _change(_LOAD, _pb["RepositoryModelLoadRequest"](model_name=checked_text("name", name)))


def unload_model(name: str) -> Job[None]:
    """Unloads all versions of a model, and waits until its requests are answered.

    Errors as of load_model(); NotFoundError: there is nothing of this name to unload."""
    return _change(_UNLOAD, _pb["RepositoryModelUnloadRequest"](model_name=checked_text("name", name)))


def _change(rpc: Rpc, message: Any) -> Job[None]:
    return Job([Request(rpc, message, _nothing)], _nothing, changes_models=True)


def _nothing(_: Any) -> None:
    pass
