"""Keeps pyarrow.compute from parsing the docstrings of 300 functions, which takes 18 ms.

pyarrow.compute parses them with `pyarrow.vendored.docscrape`, and puts the parameters into its own
help texts. No command needs these texts. In a user's Python, `import teho` changes nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["skip_parsing"]

_NAME = "pyarrow.vendored.docscrape"


class _Docstring:
    """A docstring without its parameters; the other parts are parsed if they are needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getitem__(self, part: str) -> Any:
        return [] if part == "Parameters" else _original().NumpyDocString(self._text)[part]


class _Docscrape(ModuleType):
    """Replaces the module; another pyarrow may use more of it, and gets the original."""

    NumpyDocString = _Docstring

    def __getattr__(self, name: str) -> Any:
        return getattr(_original(), name)


def skip_parsing() -> None:
    """Replace the module, if pyarrow has not loaded it yet."""
    sys.modules.setdefault(_NAME, _Docscrape(_NAME))


def _original() -> Any:
    if isinstance(sys.modules.get(_NAME), _Docscrape):
        del sys.modules[_NAME]
    return import_module(_NAME)
