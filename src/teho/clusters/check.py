"""Every mistake of a cluster's file at once, for whoever writes one."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import msgspec

from teho.clusters.catalogue import read_cluster
from teho.config.toml import did_you_mean, read_toml
from teho.errors import InputError
from teho.model.cluster import Cluster

__all__ = ["mistakes_in"]


def mistakes_in(path: Path) -> list[str]:
    """Return a line for each mistake of a file, with its place in it; empty where it is sound.

    What a file says that cannot be is looked for once every key and value is one.
    """
    try:
        found = list(_of_struct(read_toml(path), Cluster, ""))
        if not found:
            read_cluster(path)
    except InputError as error:
        found = [str(error).removeprefix(f"{path}: ")]
    return [f"{path}: {sentence}" for sentence in found]


def _of_struct(table: dict[str, Any], noun: type[msgspec.Struct], where: str) -> Iterator[str]:
    fields = {field.name: field for field in msgspec.structs.fields(noun)}
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
        kind = arguments[0]  # the other is None, which TOML has no word for
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
