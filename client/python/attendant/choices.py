# SPDX-License-Identifier: Apache-2.0
"""Arguments that are words or counts. Enums of the wire are lower-case words without their common prefix: POOLING_MEAN is
"mean"."""

from __future__ import annotations

import operator
import os
from typing import Any, TypeVar

T = TypeVar("T")


def _words(enum: Any) -> dict[str, int]:
    """Of a descriptor: {"mean": 1, ...}."""
    prefix = os.path.commonprefix([value.name for value in enum.values])
    return {value.name[prefix.rindex("_") + 1:].lower(): value.number for value in enum.values}


def checked_text(what: str, given: T) -> T:
    """TypeError: it is neither a text nor None."""
    if given is not None and not isinstance(given, str):
        raise TypeError(f"{what} is {given!r}: it must be a text")
    return given


def checked_count(what: str, given: int) -> int:
    """TypeError: it is no whole number. ValueError: it is below 1."""
    try:
        count = operator.index(given)
    except TypeError:
        raise TypeError(f"{what} is {given!r}: it must be a whole number") from None
    if count < 1:
        raise ValueError(f"{what} is {count}: it must be at least 1")
    return count


def number_of(enum: Any, what: str, word: str | None) -> Any:
    """The number of a word; None is 0. ValueError lists the words."""
    words = _words(enum)
    if word is None:
        return 0
    if word not in words:
        raise ValueError(f"{what} is {word!r}: it must be one of {', '.join(words)}")
    return words[word]


def word_of(enum: Any, number: int) -> str:
    """The word of a number, or the number itself where a newer server sends one that is not known."""
    return next((word for word, known in _words(enum).items() if known == number), str(number))
