# SPDX-License-Identifier: Apache-2.0
"""A model of the server in the place of a SentenceTransformer."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from attendant.client import Client
from attendant.operations.status import answering
from attendant.tensors import Array


class SentenceEncoder:
    """encode() takes the arguments of SentenceTransformer.encode() that a remote model can obey. What needs the model's
    prompts or dimensions asks the server for them once; prompts take an API key of the group `read`."""

    def __init__(self, client: Client | str = "127.0.0.1:8001", model: str | None = None) -> None:
        self._client = Client(client) if isinstance(client, str) else client
        self._model = model
        self._dimension: int | None = None
        self._prompt_names: Container[str] | None = None

    def encode(self, sentences: str | Sequence[str], prompt_name: str | None = None, prompt: str | None = None,
               batch_size: int = 32, show_progress_bar: bool | None = None, output_value: str = "sentence_embedding",
               precision: str = "float32", convert_to_numpy: bool = True, convert_to_tensor: bool = False,
               device: Any = None, normalize_embeddings: bool = False, truncate_dim: int | None = None) -> Any:
        """Embeddings of the sentences, [sentences, dims], or [dims] of a single one.

        prompt_name: the prompt of the model that goes before each sentence; None: the model's default.
        prompt: put before each sentence, in place of the model's.
        show_progress_bar: with tqdm, which must be installed.
        output_value: "sentence_embedding", or "token_embeddings" for a list of [len, hidden].
        precision: of embeddings, as the `dtype` of Client.embed(): "float32", "int8", "binary", "ubinary".
        convert_to_numpy: False gives a list of arrays. convert_to_tensor: PyTorch's tensors instead.
        device: not read; the server has its own.
        normalize_embeddings: to length 1. False leaves it to the model, as in SentenceTransformer.
        truncate_dim: keep the first dimensions, before normalizing."""
        single = isinstance(sentences, str)
        texts: Iterable[str] = [sentences] if isinstance(sentences, str) else sentences
        if prompt is not None:
            texts = [prompt + text for text in texts]
            prompt_name = ""
        if show_progress_bar:
            from tqdm.auto import tqdm  # pylint: disable=import-outside-toplevel
            texts = tqdm(texts, desc="Sentences")
        if output_value == "token_embeddings":
            rows: Sequence[Array] | Array = self._token_embeddings(texts, prompt_name)
        elif output_value == "sentence_embedding":
            rows = self._client.embed(texts, model=self._model, normalize=normalize_embeddings or None,
                                      dims=truncate_dim or 0, prompt_name=prompt_name, dtype=precision,
                                      batch_size=batch_size)
            rows = rows if rows.flags.writeable else rows.copy()  # as from SentenceTransformer
        else:
            raise ValueError(f"output_value is {output_value!r}: it must be sentence_embedding or token_embeddings")
        if convert_to_tensor:
            rows = _tensors(rows)
        elif not convert_to_numpy:
            rows = list(rows)
        return rows[0] if single else rows

    def encode_query(self, sentences: str | Sequence[str], prompt_name: str | None = None, prompt: str | None = None,
                     **options: Any) -> Any:
        """encode(), by default with the model's prompt "query", if it has one."""
        return self.encode(sentences, self._prompt_of(prompt_name, prompt, "query"), prompt, **options)

    def encode_document(self, sentences: str | Sequence[str], prompt_name: str | None = None, prompt: str | None = None,
                        **options: Any) -> Any:
        """encode(), by default with the first that the model has of the prompts "document", "passage" and "corpus"."""
        prompt_name = self._prompt_of(prompt_name, prompt, "document", "passage", "corpus")
        return self.encode(sentences, prompt_name, prompt, **options)

    def get_sentence_embedding_dimension(self) -> int:
        """Values of an embedding, without truncate_dim."""
        if self._dimension is None:
            self._try()
        return cast(int, self._dimension)

    def _try(self) -> str:
        """The name of the model, which has loaded then."""
        result = self._client.encode(["a"], model=self._model, last_hidden_state=False, pooled=True)
        self._dimension = result.pooled.shape[1]  # type: ignore[union-attr]
        return result.model

    def _prompts(self) -> Container[str]:
        """Remembered from a model that serves: of one that has not loaded the server tells none."""
        if self._prompt_names is not None:
            return self._prompt_names
        name = self._try()
        model = answering(self._client.models(), name, str(self._client.options.model_version or ""))
        if model is None:
            return ()
        if model.serves:
            self._prompt_names = model.prompt_names
        return model.prompt_names

    def _prompt_of(self, prompt_name: str | None, prompt: str | None, *names: str) -> str | None:
        """The caller's prompt, otherwise the first of these names that the model has."""
        if prompt_name is not None or prompt is not None:
            return prompt_name
        known = self._prompts()
        return next((name for name in names if name in known), None)

    def _token_embeddings(self, texts: Iterable[str], prompt_name: str | None) -> list[Array]:
        """A request for each text: hidden states are large."""
        answers = (self._client.encode([text], model=self._model, prompt_name=prompt_name) for text in texts)
        return [answer.last_hidden_state[0].copy() for answer in answers]  # type: ignore[index]

    def similarity(self, first: ArrayLike, second: ArrayLike) -> Array:
        """Cosine similarities of embeddings: [first, second]."""
        a, b = (np.atleast_2d(np.asarray(rows, np.float32)) for rows in (first, second))
        lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)[None]
        cosines: Array = a @ b.T / np.maximum(lengths, np.finfo(np.float32).tiny)
        return cosines


def _tensors(rows: Sequence[Array] | Array) -> Any:
    import torch  # pylint: disable=import-outside-toplevel
    return torch.from_numpy(rows) if isinstance(rows, np.ndarray) else [torch.from_numpy(row) for row in rows]
