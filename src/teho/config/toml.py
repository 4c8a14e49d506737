"""Read TOML files into typed structs, with errors that name the file and the key."""

from __future__ import annotations

import difflib
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from teho.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["did_you_mean", "mistakes", "read_toml", "to_noun"]

T = TypeVar("T", bound=msgspec.Struct)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InputError: the file cannot be opened, or is not TOML.
    """
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "a TOML file that you can read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}", "TOML, as described on https://toml.io") from error
    return content


def to_noun(content: dict[str, Any], noun: type[T], path: Path) -> T:
    """Turn a TOML table into a msgspec struct that forbids unknown fields.

    Raises:
        InputError: a key is unknown, and the message has the nearest known key; or a value has
            the wrong type.
    """
    try:
        return msgspec.convert(content, noun)
    except msgspec.ValidationError as error:
        found = next(mistakes(content, noun), str(error))
        raise InputError(f"{path}: {found}") from error


def mistakes(content: dict[str, Any], noun: type[msgspec.Struct]) -> Iterator[str]:
    """Yield a sentence for each key that is unknown, missing, or has a wrong value.

    Each names its place, such as `nodes[0] (gpu)`, and the nearest known key for an unknown one.
    """
    yield from _of_struct(content, noun, "")


def _of_struct(table: dict[str, Any], noun: type[msgspec.Struct], where: str) -> Iterator[str]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(noun)}
    place = f"{where}: " if where else ""
    for key in table:
        if key not in fields:
            yield f"{place}unknown key {key!r}{did_you_mean(key, fields)}"
    for name, field in fields.items():
        if name in table:
            yield from _of_value(table[name], field.type, f"{where}.{name}" if where else name)
        elif field.required:
            yield f"{place}{name!r} is missing"


def _of_value(value: Any, kind: Any, where: str) -> Iterator[str]:
    arguments = get_args(kind)
    if get_origin(kind) in {Union, types.UnionType}:
        kind = arguments[0]  # the other type is None, which TOML does not have
        arguments = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        yield from _of_struct(value, kind, where)
    elif get_origin(kind) is tuple and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _of_value(item, arguments[0], f"{where}[{number}]{_called(item)}")
    elif get_origin(kind) is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _of_value(item, arguments[1], f"{where}.{key}")
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            yield f"{where} = {value!r}: {error}"


def _called(item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return f" ({name})" if isinstance(name, str) and name else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: the nearest known word, or all."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f", did you mean {near[0]!r}?" if near else "; known are " + ", ".join(known)
