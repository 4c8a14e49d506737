"""Reading TOML files into typed nouns, with errors that name the file and the key."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from teho.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["did_you_mean", "read_toml", "to_noun"]

if TYPE_CHECKING:
    from msgspec import inspect

T = TypeVar("T", bound=msgspec.Struct)
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<key>[^`]*)`(?: - at `\$(?P<where>[^`]*)`)?")

_STEP = re.compile(r"\.[^.\[]+|\[[^\]]*\]")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InputError: it cannot be opened, or it is not TOML.
    """
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "a TOML file that you can read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}", "TOML, as on https://toml.io") from error
    return content


def to_noun(content: dict[str, Any], noun: type[T], path: Path) -> T:
    """Turn a TOML table into a noun (a msgspec struct that forbids unknown fields).

    Raises:
        InputError: a key that the noun, or a noun inside it, does not have (with the
            nearest one that it has), or a value of the wrong type.
    """
    try:
        return msgspec.convert(content, noun)
    except msgspec.ValidationError as error:
        unknown = _UNKNOWN_FIELD.search(str(error))
        if unknown is None:
            raise InputError(f"{path}: {error}") from error
        where = unknown["where"] or ""
        inside = f" in {where.lstrip('.')}" if where else ""
        raise InputError(
            f"{path}: unknown key {unknown['key']!r}{inside}"
            f"{did_you_mean(unknown['key'], _keys_at(noun, where))}"
        ) from error


def _keys_at(noun: type[msgspec.Struct], where: str) -> list[str]:
    """Return the keys of the table at a path such as `.nodes[0].gpu`, as msgspec writes it."""
    from msgspec import inspect

    kind: inspect.Type = inspect.type_info(noun)
    for step in _STEP.findall(where):
        kind = _without_none(kind)
        if isinstance(kind, inspect.StructType):
            kind = next(one.type for one in kind.fields if one.encode_name == step.lstrip("."))
        elif isinstance(kind, inspect.DictType):
            kind = kind.value_type
        elif isinstance(kind, inspect.VarTupleType | inspect.ListType):
            kind = kind.item_type
    kind = _without_none(kind)
    return [one.encode_name for one in kind.fields] if isinstance(kind, inspect.StructType) else []


def _without_none(kind: inspect.Type) -> inspect.Type:
    from msgspec import inspect

    if isinstance(kind, inspect.UnionType):
        return next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Continue a sentence about an unknown word: with the nearest known one, or with all."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f", did you mean {near[0]!r}?" if near else "; known are " + ", ".join(known)
