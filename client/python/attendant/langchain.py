# SPDX-License-Identifier: Apache-2.0
"""Embeddings for LangChain. Without langchain-core the class has the same methods."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from attendant.client import Client

if TYPE_CHECKING:
    _Embeddings = object
else:
    try:
        from langchain_core.embeddings import Embeddings as _Embeddings
    except ImportError:
        _Embeddings = object


class AttendantEmbeddings(_Embeddings):
    """embed_options are those of Client.embed(), for example dims=256 or prompt_name="passage". query_prompt_name is the
    prompt of queries; None: that of documents."""

    def __init__(self, client: Client | str = "127.0.0.1:8001", model: str | None = None,
                 query_prompt_name: str | None = None, **embed_options: Any) -> None:
        self._client = Client(client) if isinstance(client, str) else client
        self._options: dict[str, Any] = {"model": model, **embed_options}
        self._query = {} if query_prompt_name is None else {"prompt_name": query_prompt_name}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self._client.embed(texts, **self._options).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        row: list[float] = self._client.embed(text, **{**self._options, **self._query}).tolist()
        return row

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """In a thread: LangChain calls one object from several event loops, and an AsyncClient belongs to one."""
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        return await asyncio.to_thread(self.embed_query, text)
