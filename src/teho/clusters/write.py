"""Write a cluster as a file of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import tomli_w

from teho.model.cluster import Cluster

__all__ = ["cluster_text"]

# From here on, not every whole number is a float.
_WHOLE_BELOW = float(2**53)


def cluster_text(cluster: Cluster, header: Iterable[str] = ()) -> str:
    """Write a cluster as TOML, without the values that are defaults.

    Args:
        cluster: the cluster. Reading the text again gives an equal cluster.
        header: lines of the comment at the top, without line breaks.
    """
    comment = "".join(f"# {line}".rstrip() + "\n" for line in header)
    return comment + ("\n" if comment else "") + tomli_w.dumps(_table(cluster))


def _table(noun: msgspec.Struct) -> dict[str, Any]:
    pairs = ((field, getattr(noun, field.name)) for field in msgspec.structs.fields(noun))
    return {
        field.encode_name: _value(value)
        for field, value in pairs
        if field.required or value != field.default
        if value is not None
        if field.required or value not in ((), {})
    }


def _value(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _table(value)
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_BELOW:
        return int(value)
    return value
