"""What a kernel computes, and whether it uses tensor cores, by its name."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Union

import msgspec

from teho.config.toml import read_toml, to_noun
from teho.model.trace import Category

__all__ = ["category_of", "uses_tensor_cores"]

_FILE = Path(__file__).with_name("kernels.toml")
_WITH_TENSOR_CORES = frozenset({"matmul", "convolution", "attention"})


class _CategoryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Category
    kernel: str
    operator: str = ""
    source: str


class _TensorRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    used: bool
    kernel: str
    source: str


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    category: tuple[_CategoryRow, ...]
    tensor_cores: tuple[_TensorRow, ...]


@functools.cache
def _table() -> _Table:
    return to_noun(read_toml(_FILE), _Table, _FILE)


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


@functools.lru_cache(maxsize=1 << 16)
def category_of(kernel: str, operator: str = "") -> Category:
    """Return the category of a kernel: by its name, else by the operator that launched it."""
    rows = _table().category
    for row in rows:
        if _pattern(row.kernel).search(kernel):
            return row.name
    for row in rows:
        if operator and row.operator and _pattern(row.operator).search(operator):
            return row.name
    return "other"


def uses_tensor_cores(kernel: str, category: Category) -> Union[bool, None]:
    """Return whether a kernel's name shows that it uses tensor cores. None: it does not show it."""
    if category in _WITH_TENSOR_CORES:
        for row in _table().tensor_cores:
            if _pattern(row.kernel).search(kernel):
                return row.used
    return None
